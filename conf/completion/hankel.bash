# Completion of hankel for bash. Commands and options are those that `hankel --help` and `hankel COMMAND --help` name.
_hankel()
{
  local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} words
  local IFS=$' \t\n'
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ] || [ "$previous" = help ]; then
    words=$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -n 's/^  \([a-z]*\)  .*/\1/p' | grep -v '^hankel$')
    mapfile -t COMPREPLY < <(compgen -W "$words help --help --version" -- "$cur")
    return
  fi
  case $cur in
  -*)
    words=$("${COMP_WORDS[0]}" "$command" --help 2>/dev/null | grep -o -e '--[a-z][a-z-]*' | sort -u)
    mapfile -t COMPREPLY < <(compgen -W "$words --help" -- "$cur")
    ;;
  *)
    case $previous in
    --backend) words='auto cpu cuda reference' ;;
    --format) words='text jsonl csv table' ;;
    --unit) words='s ms us ns' ;;
    sensors | ack | token) return ;; # no files
    *) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    ;;
  esac
}
complete -F _hankel hankel
