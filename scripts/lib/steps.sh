# shellcheck shell=bash
# Messages, bounded waits and the clean-up that scripts/quickstart shares with
# the tests. To be sourced; the caller sets -eu.

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

# What this script has to take away again.
MOUNTED=() # mount points of file systems on loop devices
FUSED=()   # mount points of nbdfuse
LOOPED=()  # loop devices
RUNNING=() # process ids, all children of this shell
WRITERS=() # those of them that use a mount
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
  RUNNING+=("$STARTED")
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
  mountpoint -q "$1" || grep -qs " $1 " /proc/self/mounts || return 0
  wait_until 10 umount "$1" 2>/dev/null || umount -l "$1"
}

loop_is_free() {
  ! losetup "$1" >/dev/null 2>&1
}

# detach_loop DEVICE: and forgets it, since others may get its number next.
detach_loop() {
  local device keep=()
  losetup -d "$1" 2>/dev/null || true
  wait_until 10 loop_is_free "$1" || return 1
  for device in "${LOOPED[@]}"; do
    [ "$device" = "$1" ] || keep+=("$device")
  done
  LOOPED=("${keep[@]}")
}

# Takes everything down, whatever state it is in, and may be called twice.
clean_up() {
  local i
  set +e
  trap '' INT TERM HUP
  # Processes that use the mounts first, then the file systems, the devices
  # below them, and last what serves those.
  for i in "${WRITERS[@]}"; do
    end_process "$i"
  done
  for i in "${MOUNTED[@]}"; do
    unmount "$i"
  done
  for i in "${LOOPED[@]}"; do
    detach_loop "$i"
  done
  for i in "${FUSED[@]}"; do
    unmount "$i"
  done
  for ((i = ${#RUNNING[@]} - 1; i >= 0; i--)); do
    end_process "${RUNNING[i]}"
  done
  MOUNTED=() FUSED=() RUNNING=() WRITERS=()
  if [ -n "$WORKDIR" ]; then
    rm -rf --one-file-system "$WORKDIR"
    WORKDIR=
  fi
}

# begin_work: the folder all of it lives in, and the promise to remove it.
begin_work() {
  WORKDIR=$(mktemp -d "${TMPDIR:-/tmp}/twinlog.XXXXXX")
  trap clean_up EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  # A server that is killed takes nbdfuse with it: no core files of that.
  ulimit -c 0
}
