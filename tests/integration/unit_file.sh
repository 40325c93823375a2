#!/bin/sh
# systemd accepts the units without a word, and rates the service as well hardened: an exposure of 1.7 at most where it may use a
# GPU, of 1.3 with the drop-in for the CPU alone. Arguments: the service, the socket, the drop-in, the daemon's executable.
command -v systemd-analyze >/dev/null || exit 77
set -eu
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
sed "s#^ExecStart=[^ ]*#ExecStart=$(realpath "$4")#" "$1" >"$directory/hankeld.service"
cp "$2" "$directory/hankeld.socket"
rate() {
  systemd-analyze verify --man=no "$directory/hankeld.service" "$directory/hankeld.socket" 2>"$directory/said"
  cat "$directory/said"
  [ ! -s "$directory/said" ]
  status=0
  systemd-analyze security --offline=true --threshold="$1" --no-pager "$directory/hankeld.service" >"$directory/report" || status=$?
  tail -1 "$directory/report"
  return "$status"
}
rate 17
mkdir "$directory/hankeld.service.d"
cp "$3" "$directory/hankeld.service.d/cpu-only.conf"
rate 13
