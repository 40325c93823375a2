#!/usr/bin/env bash
# Are the events of algorithm = graph on the GPU those of the CPU, to the last digit? For recordings given.
#
#     tests/bench/graph_same_events.sh HANKEL RECORDING...
hankel=$1; shift
status=0
for recording; do
  for keys in window=20 window=20,level=0.1,roughness=0.85 window=auto window=10,resident=300,alert=0.4; do
    for backend in cpu cuda; do
      "$hankel" replay --backend $backend --detector "algorithm=graph,$keys" --format jsonl "$recording" | grep '^{"event"' > "/tmp/events.$backend"
    done
    n=$(wc -l < /tmp/events.cpu)
    if cmp -s /tmp/events.cpu /tmp/events.cuda; then echo "same $n events ($(grep -c corrected /tmp/events.cpu) corrected): $recording $keys"
    else echo "DIFFERENT: $recording $keys"; diff /tmp/events.cpu /tmp/events.cuda | head -4; status=1; fi
  done
done
exit $status
