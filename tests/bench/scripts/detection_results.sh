#!/usr/bin/env bash
# Makes tests/bench/results/detection-{untuned,graph,graph-window,shift}.txt and the plots again: how good the detectors' alerts
# are on labelled recordings, and on made signals whose changes are known. Notes written by hand are in detection-notes.txt there.
#
#     tests/bench/scripts/detection_results.sh BUILD DATA
#
# BUILD: a build folder; DATA: holds nab/, tssb/ and skab/. Needs numpy. Takes a few minutes.
set -euo pipefail

build=$(realpath "$1") data=$(realpath "$2") here=$(dirname "$(realpath "$0")")
results=$here/../results work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH=$build:$PATH
mkdir "$work/nab-alone" "$work/tssb-alone" "$work/skab-alone" "$work/plots"
ln -s "$data/nab" "$work/nab-alone/nab"
ln -s "$data/tssb" "$work/tssb-alone/tssb"
ln -s "$data/skab" "$work/skab-alone/skab"

# Each detector with the option before it.
each() {
  printf -- '--detector\n%s\n' "$@"
}

# Prints a command as a user would type it, and below it what it prints.
shown() {
  printf '$ %s\n' "$1"
  shift
  "$@"
  echo
}

signals() { # KEYS...: how these detectors judge signals
  shown 'tests/bench/scripts/detection_signals.py FOLDER hankel KEYS...' "$here/detection_signals.py" "$work/1" hankel "$@"
  echo 'Other signals, and more of those in which nothing changes:'
  shown 'tests/bench/scripts/detection_signals.py --seed 2 --still 20 FOLDER hankel KEYS...' \
    "$here/detection_signals.py" --seed 2 --still 20 "$work/2" hankel "$@"
}

begin() { # TITLE
  printf '%s\n' "$1" "commit $(git -C "$here" rev-parse --short HEAD), cpu backend, $(date -u +%Y-%m-%d); made by tests/bench/scripts/detection_results.sh;" \
    'hankel evaluate --help says what counts, and one setting is that of all recordings in a table' ''
}

graph=algorithm=graph untuned=algorithm=graph,roughness=0.85,shortest=2,locality=0.2 shift=algorithm=shift

{
  begin 'What raises alerts of a sensor of which nothing is known (hankel replay and hankel evaluate with no detector, conf/hankeld.conf): graph and novelty.'
  shown 'hankel evaluate --plots FOLDER DATA      (skab: with --no-series)' hankel evaluate --plots "$work/plots" "$data"
  hankel evaluate --plots "$work/plots" --no-series "$work/skab-alone" >/dev/null
  shown 'hankel evaluate --brief --given-windows --detector KEYS... DATA      (tssb: the window that comes with a recording)' \
    hankel evaluate --brief --given-windows $(each $graph $graph,roughness=0.85 $graph,roughness=0.85,shortest=2 $untuned) "$work/tssb-alone"
  signals algorithm=ika $graph $untuned $shift
} >"$work/untuned.txt"

{
  begin 'algorithm = graph on labelled recordings and on signals.'
  shown 'hankel evaluate --detector algorithm=graph --given-windows DATA      (nab and skab give no window: it is found)' \
    hankel evaluate --detector $graph --given-windows "$data"
  shown 'hankel evaluate --brief --detector KEYS... DATA' hankel evaluate --brief \
    $(each $graph,window={10,20,50} $graph,window=20,alert={0.55,0.6} $graph,window=20,level=0.1 $untuned,window=20) "$data"
  shown 'hankel evaluate --brief --given-windows --detector KEYS... DATA      (tssb alone)' hankel evaluate --brief --given-windows \
    $(each $graph $graph,resident=1000,alert=0.4667 $graph,resident={750,3000} $graph,level=0.1 $graph,neighbours={1,5} $graph,alert={0.45,0.55} \
      $graph,roughness=0.85 $graph,shortest={2,3,4} $graph,locality={0.1,0.2,0.5} $untuned) "$work/tssb-alone"
  signals $graph,window={10,20,30,40,50} $untuned,window={10,20,30,40,50} $graph,window=20,level=0.1
} >"$work/graph.txt"

{
  begin 'window = auto: the window of algorithm = graph found from the data, beside windows that are given (detection-graph.txt).'
  shown 'hankel evaluate --detector algorithm=graph,window=auto DATA' hankel evaluate --detector $graph,window=auto "$data"
  signals $graph
} >"$work/graph-window.txt"

{
  begin 'algorithm = shift: level shifts and short events.'
  echo 'The curve: what a threshold is worth on nab.'
  shown 'hankel evaluate --brief --detector KEYS... DATA' hankel evaluate --brief \
    $(each $shift,window=20,alert={0.6,0.5,0.45,0.42,0.4,0.38,0.36,0.34,0.32,0.3} $shift,window=30,alert={0.6,0.5,0.45,0.42,0.4,0.38,0.36,0.34,0.32,0.3} \
      $shift,window=30,cooldown=64,alert={0.5,0.4,0.36,0.35,0.34} $shift,window={26,28,32,34},cooldown=56,alert=0.35) "$work/nab-alone" |
    grep -v -E '^$|^recording'
  shown 'hankel evaluate --brief --detector KEYS... DATA' hankel evaluate --brief \
    $(each $shift $shift,alert={0.4,0.375} $shift,window=10 $shift,window=30 $shift,window=30,alert=0.375 $shift,window=30,cooldown=64,alert=0.35 $shift,window=40) "$data"
  shown 'hankel evaluate --detector algorithm=shift --detector algorithm=shift,window=30,cooldown=64,alert=0.35 DATA      (the recordings of nab)' \
    hankel evaluate $(each $shift $shift,window=30,cooldown=64,alert=0.35) "$work/nab-alone"
  shown 'hankel evaluate --brief --detector algorithm=shift --tune "alert=0.35|0.4|0.5" --tune "window=10|20|30|40" DATA' \
    hankel evaluate --brief --detector $shift --tune 'alert=0.35|0.4|0.5' --tune 'window=10|20|30|40' "$data"
  signals $shift,window={10,20,30,40,50} $shift,window=30,cooldown=64,alert=0.35
} >"$work/shift.txt"

for name in untuned graph graph-window shift; do
  mv "$work/$name.txt" "$results/detection-$name.txt"
done
for name in nab tssb skab; do
  mv "$work/plots/$name.svg" "$results/detection-$name.svg"
done
