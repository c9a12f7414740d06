#!/bin/bash
# Whenever the quick start is interrupted, it takes everything away again:
# mounts, loop devices, processes and its folder.
set -eu
if [ "$(id -u)" -ne 0 ]; then
  echo "skipped: needs root"
  exit 77
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/twinlog-interrupt.XXXXXX")
trap 'rm -rf "$dir"' EXIT

left_overs() {
  grep " $dir/" /proc/self/mounts
  losetup --noheadings --raw --output NAME,BACK-FILE | grep " $dir/"
  pgrep -af "$dir/"
  find "$dir" -mindepth 1 -maxdepth 1 -name 'twinlog.*'
}

# interrupt SIGNAL TEXT: sends it once the quick start has printed TEXT.
interrupt() {
  local pid i status=0 left
  # A shell's background job would ignore SIGINT, and what nohup started SIGHUP.
  TMPDIR=$dir setsid env --default-signal=INT,HUP \
    "$TWINLOG_SOURCE/scripts/quickstart" --built "$TWINLOG_BUILD" \
    >"$dir/out" 2>&1 </dev/null &
  pid=$!
  for ((i = 0; i < 600; i++)); do
    if grep -q "$2" "$dir/out" || ! kill -0 "$pid" 2>/dev/null; then
      break
    fi
    sleep 0.05
  done
  # To the whole group, as from a terminal; and again, as a person would: bash
  # loses an INT that comes just as a child of it ends well.
  kill -s "$1" -- "-$pid"
  for ((i = 0; i < 600; i++)); do
    if ! kill -0 "$pid" 2>/dev/null; then
      break
    fi
    sleep 0.05
    [ "$((i % 20))" -ne 19 ] || kill -s "$1" -- "-$pid" 2>/dev/null || true
  done
  wait "$pid" || status=$?
  left=$(left_overs) || true
  if [ "$status" -ne $((128 + $(kill -l "$1"))) ] || [ -n "$left" ]; then
    cat "$dir/out"
    echo "$1 at '$2': status $status; left behind: $left"
    exit 1
  fi
  echo "$1 at '$2': nothing left behind"
}

interrupt INT 'Starting nodes'
interrupt TERM 'writers on each of'
interrupt HUP 'SIGKILL to node'
interrupt INT 'Round 2'
