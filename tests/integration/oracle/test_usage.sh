#!/bin/bash
# Wrong options of the scripts: one line that says what, exit status 2, and
# nothing done.
set -eu
scripts=$TWINLOG_SOURCE/scripts

refused() {
  local out status=0
  out=$("$@" 2>&1 </dev/null) || status=$?
  if [ "$status" -ne 2 ] || [ "$(wc -l <<<"$out")" -ne 1 ]; then
    echo "$*: expected one line and exit status 2, got $status: $out"
    exit 1
  fi
  echo "$out"
}

refused "$scripts/quickstart" --rounds
refused "$scripts/quickstart" --rounds 0
refused "$scripts/quickstart" --rounds two
refused "$scripts/quickstart" --built /nowhere
refused "$scripts/quickstart" --fast
refused "$scripts/install-packages" everything
refused "$scripts/install-packages"
refused "$scripts/run-tests" --fast
for script in quickstart install-packages run-tests; do
  "$scripts/$script" --help | grep -q "^usage: scripts/$script "
done
