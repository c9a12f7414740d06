#!/bin/sh
# with-tmpfs.sh SIZE COMMAND [ARGUMENT]...
# Run COMMAND in a mount namespace of its own that has a tmpfs of SIZE, whose
# path is in TL_TMPFS.  The namespace, and the tmpfs with it, ends with the
# command.  Exit status 77, a skipped test, where that is not allowed.
set -eu

size=$1
shift
dir=$(mktemp -d "${TMPDIR:-/tmp}/twinlog-tmpfs-XXXXXX")
trap 'rmdir "$dir"' EXIT
trap 'exit 1' HUP INT TERM

if [ "$(id -u)" -eq 0 ]; then
  flags=-m
else
  flags=-rm
fi
if ! unshare "$flags" mount -t tmpfs -o "size=$size" twinlog "$dir"; then
  echo "no mount namespace or tmpfs here" >&2
  exit 77
fi
# shellcheck disable=SC2016 # the inner shell expands them
unshare "$flags" sh -euc '
  mount -t tmpfs -o "size=$1,mode=0711" twinlog "$2"
  TL_TMPFS=$2
  export TL_TMPFS
  shift 2
  exec "$@"' sh "$size" "$dir" "$@"
