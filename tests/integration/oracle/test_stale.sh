#!/bin/bash
# The quick start's check is not blind: where the logs are replayed from a copy
# taken before the last writes, it must report losses, with files and with
# records.
set -eu
if [ "$(id -u)" -ne 0 ]; then
  echo "skipped: needs root"
  exit 77
fi
out=$(mktemp "${TMPDIR:-/tmp}/twinlog-stale.XXXXXX")
trap 'rm -f "$out"' EXIT

for option in '' --records; do
  status=0
  # shellcheck disable=SC2086  # no option where it is empty
  "$TWINLOG_SOURCE/scripts/quickstart" --built "$TWINLOG_BUILD" \
    --prove-oracle $option >"$out" 2>&1 || status=$?
  cat "$out"
  last=$(tail -n 1 "$out")
  if [ "$status" -ne 1 ] ||
    ! [[ $last =~ ^acknowledged\ ([0-9]+),\ lost\ ([0-9]+),\ promoted\ in ]]
  then
    echo "expected losses and exit status 1, not status $status"
    exit 1
  fi
  # All that was written after the copy is missing in it: 500 on each target
  # at the least.
  if [ "${BASH_REMATCH[2]}" -lt 500 ] ||
    [ "${BASH_REMATCH[2]}" -ge "${BASH_REMATCH[1]}" ]; then
    echo "expected what was written after the copy to be lost, and only that"
    exit 1
  fi
done
