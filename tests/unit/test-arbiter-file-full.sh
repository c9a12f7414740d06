#!/bin/sh
# test-arbiter-file-full.sh ARBITER
# A full file system, and a read-only one: the outcome is unknown, and the
# record stands.  Runs in with-tmpfs.sh.
set -eu

arbiter=$1
dir=${TL_TMPFS:?run it in with-tmpfs.sh}

fail () {
  echo "FAILED: $*" >&2
  exit 1
}

# unknown ARGUMENT...: fails with one line and neither 0 nor 1.
unknown () {
  status=0
  said=$("$arbiter" "$@" 2>&1) || status=$?
  [ "$status" -eq 2 ] || fail "$*: status $status"
  [ "$(printf '%s\n' "$said" | wc -l)" -eq 1 ] || fail "$*: $said"
  [ -n "$said" ] || fail "$*: no word"
}

"$arbiter" "$dir" cas v none one
head -c 1000000 /dev/zero >"$dir/filler" 2>/dev/null || true
unknown "$dir" cas v one two
[ ! -e "$dir/v.record.new" ] || fail 'the new file was left'
[ "$("$arbiter" "$dir" read v)" = one ] || fail 'the record is gone'
rm "$dir/filler"
"$arbiter" "$dir" cas v one two
[ "$("$arbiter" "$dir" read v)" = two ] || fail 'not swapped'

mount -o remount,ro "$dir"
unknown "$dir" cas v two three
unknown "$dir" cas w none one
mount -o remount,rw "$dir"
[ "$("$arbiter" "$dir" read v)" = two ] || fail 'the record has changed'
