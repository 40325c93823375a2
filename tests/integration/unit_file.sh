#!/bin/sh
# systemd accepts the unit file without a word, and rates it as well hardened (exposure 2.0 at most). Arguments: the unit, the
# daemon's executable.
command -v systemd-analyze >/dev/null || exit 77
set -eu
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
sed "s#^ExecStart=[^ ]*#ExecStart=$(realpath "$2")#" "$1" >"$directory/hankeld.service"
systemd-analyze verify --man=no "$directory/hankeld.service" 2>"$directory/said"
cat "$directory/said"
[ ! -s "$directory/said" ]
status=0
systemd-analyze security --offline=true --threshold=20 --no-pager "$directory/hankeld.service" >"$directory/report" || status=$?
tail -1 "$directory/report"
exit "$status"
