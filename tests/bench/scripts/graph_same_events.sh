#!/usr/bin/env bash
# Checks on the given recordings that the GPU raises the same events of algorithm = graph as the CPU, to the last digit.
#
#     tests/bench/scripts/graph_same_events.sh HANKEL RECORDING...
hankel=$1; shift
status=0 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for recording; do
  for keys in window=20 window=20,level=0.1,roughness=0.85 window=auto window=10,resident=300,alert=0.4 \
    window=20,locality=0.5 window=auto,roughness=0.85,shortest=2,locality=0.2; do
    for backend in cpu cuda; do
      "$hankel" replay --backend $backend --detector "algorithm=graph,$keys" --format jsonl "$recording" 2>"$work/said" | grep '^{"event"' >"$work/$backend"
      [ "${PIPESTATUS[0]}" -eq 0 ] || { echo "FAILED: $recording $keys, $backend"; cat "$work/said"; status=1; }
    done
    n=$(wc -l <"$work/cpu")
    if cmp -s "$work/cpu" "$work/cuda"; then echo "same $n events ($(grep -c corrected "$work/cpu") corrected): $recording $keys"
    else echo "DIFFERENT: $recording $keys"; diff "$work/cpu" "$work/cuda" | head -4; status=1; fi
  done
done
exit $status
