# shellcheck shell=bash
# Messages, bounded waits and the clean-up that scripts share with the tests. To
# be sourced; the caller sets -eu.

STEPS_BEGAN=$(date +%s%N)

# say TEXT: one line for the person who follows, with the time since the start.
say() {
  local ms=$((($(date +%s%N) - STEPS_BEGAN) / 1000000))
  printf '[%3d.%d s] %s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$*"
}

# fail TEXT [FILE]: ends the script, with the last lines of FILE where it says
# why. The EXIT trap cleans up.
fail() {
  echo "${0##*/}: $1" >&2
  if [ $# -gt 1 ] && [ -s "$2" ]; then
    tail -n 15 "$2" | sed 's/^/  | /' >&2
  fi
  exit 1
}

# Where what takes minutes to make for virtual machines is kept.
vm_cache() {
  local caches=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}
  echo "${TWINLOG_VM_CACHE:-$caches/twinlog/vm}"
}

# wait_until SECONDS COMMAND...: true as soon as COMMAND is, false at the end
# of the time.
wait_until() {
  local end=$(($(date +%s%N) + $1 * 1000000000))
  shift
  until "$@"; do
    if [ "$(date +%s%N)" -ge "$end" ]; then
      return 1
    fi
    sleep 0.05
  done
}

# The folder all of the work lives in. What has to be taken away again is found
# by it, and not by lists, which an interrupt could leave one entry short.
WORKDIR=

# A process id may have been given to a stranger since.
is_running() {
  grep -qs "^PPid:[[:space:]]*$$\$" "/proc/$1/status"
}

is_gone() {
  ! is_running "$1"
}

# background LOG COMMAND...: starts COMMAND in a session of its own, so that
# an interrupt from the terminal reaches this script alone, which then takes
# things down in order. Leaves the process id in $STARTED.
background() {
  local log=$1
  shift
  setsid "$@" >>"$log" 2>&1 </dev/null &
  STARTED=$!
  disown "$STARTED"
}

# end_process PID: TERM, then KILL; returns when it is gone.
end_process() {
  if is_running "$1"; then
    kill -TERM "$1" 2>/dev/null || true
    if ! wait_until 5 is_gone "$1"; then
      kill -KILL "$1" 2>/dev/null || true
      wait_until 5 is_gone "$1" || return 1
    fi
  fi
}

# A device may be busy for a moment after its last user has gone.
unmount() {
  is_mounted "$1" || return 0
  wait_until 10 umount "$1" 2>/dev/null || umount -l "$1"
}

is_mounted() {
  grep -qs " $1 " /proc/self/mounts
}

loop_is_free() {
  ! losetup "$1" >/dev/null 2>&1
}

detach_loop() {
  losetup -d "$1" 2>/dev/null || true
  wait_until 10 loop_is_free "$1"
}

# Mount points in $WORKDIR, the newest first: `our_mounts fuse` those of
# nbdfuse, `our_mounts disk` the others.
our_mounts() {
  awk -v dir="$WORKDIR/" -v kind="$1" \
    'index($2, dir) == 1 && (kind == "fuse") == ($3 ~ /^fuse/) { print $2 }' \
    /proc/self/mounts | tac
}

our_loops() {
  losetup --noheadings --raw --output NAME,BACK-FILE |
    awk -v dir="$WORKDIR/" 'index($2, dir) == 1 { print $1 }'
}

# Processes that `background` started: `our_processes server` what serves
# devices, `our_processes user` what uses them.
our_processes() {
  ps -o pid=,sid=,comm= --ppid $$ | awk -v kind="$1" '$1 == $2 &&
    (kind == "server") == ($3 ~ /^nbd(kit|fuse)/) { print $1 }'
}

# Takes everything down, whatever state it is in, and may be called twice.
clean_up() {
  local i
  set +e
  trap '' INT TERM HUP
  if [ -z "$WORKDIR" ]; then
    return
  fi
  # What uses the mounts first, then the file systems, the devices below them,
  # and last what serves those.
  for i in $(our_processes user); do
    end_process "$i"
  done
  for i in $(our_mounts disk); do
    unmount "$i"
  done
  for i in $(our_loops); do
    detach_loop "$i"
  done
  for i in $(our_mounts fuse); do
    unmount "$i"
  done
  for i in $(our_processes server); do
    end_process "$i"
  done
  rm -rf --one-file-system "$WORKDIR"
  WORKDIR=
}

# begin_work: makes that folder, and sees to it that nothing stays behind.
begin_work() {
  trap clean_up EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  WORKDIR=$(mktemp -d "$(realpath "${TMPDIR:-/tmp}")/twinlog.XXXXXX")
  [[ $WORKDIR != *[[:space:]]* ]] ||
    fail "set TMPDIR to a folder without a space in its path"
  # A server that is killed takes nbdfuse with it: no core files of that.
  ulimit -c 0
}
