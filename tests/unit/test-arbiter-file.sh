#!/bin/bash
# test-arbiter-file.sh ARBITER
# The arbiter on a directory: what it answers, that of many swaps at once one
# wins, and that a kill at any moment leaves a whole record and a lock that the
# next one gets.
set -eu

arbiter=$1
dir=$(mktemp -d "${TMPDIR:-/tmp}/twinlog-arbiter-XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

failures=0
complain () {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# expect STATUS OUTPUT ARGUMENT...: one call, its status and its whole output.
expect () {
  local status=$1 output=$2 got=0 said
  shift 2
  said=$("$arbiter" "$@" 2>"$dir/stderr"; echo "$? .") || got=$?
  got=${said##*$'\n'}
  got=${got% .}
  said=${said%"$got ."}
  said=${said%$'\n'}
  [ "$got" = "$status" ] || complain "$*: status $got, not $status"
  [ "$said" = "$output" ] || complain "$*: printed «$said», not «$output»"
  if [ "$status" -le 1 ]; then
    [ ! -s "$dir/stderr" ] || complain "$*: $(cat "$dir/stderr")"
  else
    [ "$(wc -l <"$dir/stderr")" -eq 1 ] ||
      complain "$*: not one line: $(cat "$dir/stderr")"
  fi
}

# ---- Answers ----

d=$dir/answers
mkdir "$d"
expect 0 '' "$d" read v
expect 1 '' "$d" cas v r:1 r:2 # there is none to swap
expect 0 '' "$d" read v
expect 0 '' "$d" cas v none r:1
expect 0 'r:1' "$d" read v
expect 1 'r:1' "$d" cas v none r:1
expect 1 'r:1' "$d" cas v r:2 r:3
expect 1 'r:1' "$d" cas v r:1:x r:3
expect 1 'r:1' "$d" cas v r: r:3
expect 0 '' "$d" cas v r:1 r:2
expect 1 'r:2' "$d" cas v r:1 r:2 # repeated: lost, to itself
expect 0 'r:2' "$d" read v
expect 0 '' "$d" read w # another volume
# shellcheck disable=SC2016 # nothing in it is to expand
odd='twinlog1:*?[a]$x:"\n'
expect 0 '' "$d" cas w none "$odd"
expect 0 "$odd" "$d" read w
expect 0 'r:2' "$d" read v
[ "$(stat -c %a "$d/v.record")" = 600 ] || complain 'mode of the record'
(cd "$dir" && expect 0 'r:2' answers read v)
mkdir "$dir/-x"
(cd "$dir" && expect 0 '' -x read v)

# ---- Refusals: never 0 or 1, which would be taken for answers ----

expect 2 ''
expect 2 '' "$d"
expect 2 '' "$d" read
expect 2 '' "$d" read v more
expect 2 '' "$d" cas v r:2
expect 2 '' "$d" cas v r:2 r:3 more
expect 2 '' "$d" write v r:2
expect 2 '' '' read v
expect 2 '' "$d/none" read v
expect 2 '' "$d/none" cas v none r:1
expect 2 '' "$d/v.record" read v
for volume in '' . .. -v .v 'a b' a/b ../v 'v*' "$(printf '%064d' 0)"; do
  expect 2 '' "$d" read "$volume"
  expect 2 '' "$d" cas "$volume" none r:1
done
for record in '' ' ' 'a b' $'a\nb' $'a\t' $'\x01'; do
  expect 2 '' "$d" cas v r:2 "$record"
  expect 2 '' "$d" cas v "$record" r:3
done
expect 2 '' "$d" cas v r:2 none
expect 0 'r:2' "$d" read v

# A record that cannot be read is not one that is not there.
for damage in '' '\n' 'a b\n' 'a\nb\n'; do
  # shellcheck disable=SC2059 # that is the format
  printf "$damage" >"$d/x.record"
  expect 2 '' "$d" read x
  expect 2 '' "$d" cas x none r:1
done
rm "$d/x.record"
ln -s nowhere "$d/x.record"
expect 2 '' "$d" read x
expect 2 '' "$d" cas x none r:1
mkdir "$d/y.record"
expect 2 '' "$d" read y
expect 2 '' "$d" cas y none r:1
mkdir "$d/z.lock"
expect 2 '' "$d" read z
status=0
"$arbiter" "$d" read v >/dev/full 2>&1 || status=$?
[ "$status" -eq 2 ] || complain "full output: status $status"

# ---- One of many swaps wins ----

d=$dir/many
mkdir "$d"
old=none
for round in 1 2 3 4 5; do
  pids=()
  for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    (
      status=0
      said=$("$arbiter" "$d" cas v "$old" "round$round:$i") || status=$?
      echo "$status $said" >"$dir/result.$i"
    ) &
    pids+=($!)
  done
  wait "${pids[@]}"
  stands=$("$arbiter" "$d" read v)
  wins=0
  for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    read -r status said <"$dir/result.$i"
    case $status in
      0)
        wins=$((wins + 1))
        [ "$stands" = "round$round:$i" ] || complain "$i won, $stands stands"
        ;;
      1) [ "$said" = "$stands" ] || complain "$i was told $said, not $stands" ;;
      *) complain "status $status in round $round" ;;
    esac
  done
  [ "$wins" -eq 1 ] || complain "$wins winners in round $round"
  old=$stands
done

# ---- Killed at any moment ----

# A call of its own process group is killed after 0 to 50 ms, whole (even
# rounds) or its shell alone, whose children then go on; the same swap is
# repeated until it is known: V3 of the design.
d=$dir/killed
mkdir "$d"
"$arbiter" "$d" cas v none "step:0"
killed=0
for ((i = 1; i <= 150; i++)); do
  before=step:$((i - 1)) after=step:$i
  setsid "$arbiter" "$d" cas v "$before" "$after" >/dev/null &
  pid=$!
  sleep "0.0$((RANDOM % 5))$((RANDOM % 10))"
  if [ $((i % 2)) -eq 0 ]; then
    kill -KILL -- "-$pid" 2>/dev/null || true
  else
    kill -KILL "$pid" 2>/dev/null || true
  fi
  status=0
  wait "$pid" 2>/dev/null || status=$?
  if [ "$status" -eq 0 ]; then
    [ "$("$arbiter" "$d" read v)" = "$after" ] || complain "step $i: not kept"
    continue
  fi
  [ "$status" -eq 137 ] || complain "step $i: status $status"
  killed=$((killed + 1))
  stands=$("$arbiter" "$d" read v)
  [ "$stands" = "$before" ] || [ "$stands" = "$after" ] ||
    complain "step $i: $stands stands"
  status=0
  said=$("$arbiter" "$d" cas v "$before" "$after") || status=$?
  case $status:$said in
    0: | "1:$after") ;;
    *) complain "step $i: repeated: $status $said" ;;
  esac
done
[ "$killed" -ge 10 ] || complain "only $killed of 150 calls were killed in time"
[ "$(find "$d" -type f | wc -l)" -le 3 ] || complain 'files pile up'

echo "killed $killed, failures $failures"
[ "$failures" -eq 0 ]
