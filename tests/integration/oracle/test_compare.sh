#!/bin/bash
# The writers' own comparison finds each way in which something can be gone,
# and nothing where all is there. Needs no root and no device.
set -eu
tools=$TWINLOG_BUILD/tests/integration/oracle
dir=$(mktemp -d "${TMPDIR:-/tmp}/twinlog-compare.XXXXXX")
server=
clean_up() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$dir"
}
trap clean_up EXIT

# expect WHAT STATUS COUNTS COMMAND...
expect() {
  local what=$1 status=$2 counts=$3 got=0 out
  shift 3
  out=$("$@" 2>"$dir/stderr") || got=$?
  if [ "$got" -ne "$status" ] || [ "$out" != "$counts" ]; then
    echo "$what: expected status $status and '$counts', got $got and '$out'"
    cat "$dir/stderr"
    exit 1
  fi
  echo "$what: $out"
}

mkdir "$dir/files"
"$tools/fsync-writer" write "$dir/files" r1 "$dir/history" 4 25
files() {
  expect "$1" "$2" "$3" "$tools/fsync-writer" verify "$dir/files" \
    "$dir/history"
}
files "all files there" 0 "100 0"
mv "$dir/files/r1-0/00000003" "$dir/kept"
files "a file missing" 1 "100 1"
mv "$dir/kept" "$dir/files/r1-0/00000003"
printf x >>"$dir/files/r1-1/00000004"
files "a file longer" 1 "100 1"
: >"$dir/files/r1-2/00000005"
files "another file empty" 1 "100 2"
cp "$dir/files/r1-3/00000006" "$dir/files/r1-3/00000007"
files "a file with another's content" 1 "100 3"
# Not acknowledged: may be there or not.
echo "begin r1-9/00000000 0000000000000001 1" >>"$dir/history"
files "a file begun only" 1 "100 3"
rm -r "$dir/files"
expect "no file system" 2 "" "$tools/fsync-writer" verify "$dir/files" \
  "$dir/history"
echo "done what is this" >>"$dir/history"
expect "a broken history" 2 "" "$tools/fsync-writer" verify "$dir" \
  "$dir/history"

# The records: against a file that can be changed behind the server's back.
truncate -s 1M "$dir/disk"
nbdkit -f --exit-with-parent --unix "$dir/sock" file "$dir/disk" &
server=$!
for ((i = 0; i < 200; i++)); do
  [ ! -S "$dir/sock" ] || break
  sleep 0.05
done
"$tools/record-writer" write "$dir/sock" "$dir/records" 4 1048576 100
records() {
  expect "$1" "$2" "$3" "$tools/record-writer" verify "$dir/sock" \
    "$dir/records"
}
records "all records there, the overwritten ones too" 0 "400 0"
cp "$dir/disk" "$dir/older"
dd if=/dev/zero of="$dir/disk" bs=4096 count=1 seek=7 conv=notrunc status=none
records "a record zeroed" 1 "400 1"
cp "$dir/older" "$dir/disk"
"$tools/record-writer" write "$dir/sock" "$dir/records" 1 1048576 10
records "ten records newer" 0 "410 0"
dd if="$dir/older" of="$dir/disk" bs=4096 conv=notrunc status=none
records "the older disk" 1 "410 10"
