# shellcheck shell=sh
# shellcheck disable=SC2034  # what it sets is for those who source it
# What twinlog-failover and twinlog-move share: steps that are looked at before
# they are taken, said, logged, and only said with --dry-run. To be sourced;
# the caller sets ME (its name) and -eu.

# Exit statuses, those of the twinlog command.
FAILED=1
USAGE=2
REFUSED=3
UNREACHABLE=4

dry_run=false
volume=
control=
socket=
device=
twinlog=${TWINLOG_COMMAND:-twinlog}
search=/dev/disk/by-id
share='zfs share -a'
force=
pools=

# say TEXT: to whoever looks on, and to the system's log.
say() {
  printf '%s: %s\n' "$ME" "$*" >&2
  logger -t "$ME" -- "${volume:+$volume: }$*" 2>/dev/null || true
}

# stop STATUS TEXT
stop() {
  status=$1
  shift
  say "$*"
  exit "$status"
}

bad_usage() {
  printf '%s: %s; see --help\n' "$ME" "$1" >&2
  exit "$USAGE"
}

# value OPTION REST...: the value of an option.
value() {
  if [ $# -lt 2 ] || [ -z "$2" ]; then
    bad_usage "$1 takes a value"
  fi
  printf '%s' "$2"
}

is_name() {
  case $1 in
    '' | -* | .* | *[!A-Za-z0-9._:-]*) return 1 ;;
  esac
}

# common_option OPTION REST...: takes an option that both scripts know, and
# sets TAKEN to the number of words it was; 0: unknown.
common_option() {
  TAKEN=2
  case $1 in
    --pool)
      word=$(value "$@")
      is_name "$word" || bad_usage "--pool takes the name of a pool"
      pools="$pools $word"
      ;;
    --control) control=$(value "$@") ;;
    --socket) socket=$(value "$@") ;;
    --device) device=$(value "$@") ;;
    --search) search=$(value "$@") ;;
    --share)
      [ $# -ge 2 ] || bad_usage "--share takes a command, or an empty word"
      share=$2
      ;;
    --dry-run)
      dry_run=true
      TAKEN=1
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*) TAKEN=0 ;;
    *)
      is_name "$1" || bad_usage "\"$1\" is not the name of a volume"
      [ -z "$volume" ] || bad_usage "there is one volume, not $volume and $1"
      volume=$1
      TAKEN=1
      ;;
  esac
}

# step TEXT COMMAND...: says TEXT and runs COMMAND; its status.
step() {
  if $dry_run; then
    say "would: $1"
    return 0
  fi
  say "$1"
  shift
  "$@"
}

# on_node COMMAND OPTION...: a twinlog command, spoken to this node.
on_node() {
  verb=$1
  shift
  "$twinlog" ${control:+--control "$control"} "$verb" "$volume" "$@"
}

# node_is STATE: does the node say so now?
node_is() {
  on_node wait --for "$1" --timeout 0 >/dev/null 2>&1
}

check_node() {
  status=0
  reason=$(on_node status 2>&1 >/dev/null) || status=$?
  case $status in
    0) ;;
    "$UNREACHABLE") stop "$UNREACHABLE" "${reason#twinlog: }" ;;
    *) stop "$FAILED" "${reason#twinlog: }" ;;
  esac
}

# ---- Pools ----

is_imported() {
  zpool list -H -o name "$1" >/dev/null 2>&1
}

need_zfs() {
  if [ -n "$pools" ] && ! command -v zpool >/dev/null; then
    stop "$FAILED" "zpool is not installed here, and --pool asks for it"
  fi
}

# attach_device: a device that is attached already stays.
attach_device() {
  step "attaching the volume" on_node attach \
    ${device:+--device "$device"} ${socket:+--socket "$socket"} ||
    stop "$FAILED" "the volume could not be attached; see above. Nothing was" \
      "imported; run this again once that is mended"
}

all_imported() {
  for pool in $pools; do
    is_imported "$pool" || return 1
  done
}

# import_pools: with $force (-f) where the other machine exported nothing, since
# it died; never with -m, which would drop what is only in the log.
import_pools() {
  for pool in $pools; do
    if is_imported "$pool"; then
      say "pool $pool is imported already"
      continue
    fi
    # shellcheck disable=SC2046,SC2086  # lists of options
    step "importing pool $pool" zpool import $force -o cachefile=none \
      $(printf -- '-d %s ' $search) "$pool" ||
      stop "$FAILED" "pool $pool could not be imported; see above. Do not" \
        "import it with -m: that drops acknowledged writes that are only in" \
        "its log"
  done
}

share_pools() {
  if [ -n "$pools" ] && [ -n "$share" ]; then
    step "sharing: $share" sh -c "$share" ||
      stop "$FAILED" "the pools are imported but not shared; see above"
  fi
}
