# shellcheck shell=bash
# shellcheck disable=SC2034  # what it sets is for those who source it
# The volume as a block device (nbdfuse and loop), and two file systems that
# keep their logs on it: an XFS and an ext4. To be sourced after steps.sh.

MIB=1048576
LOG_SIZE=$((64 * MIB)) # of each file system
DATA_SIZE=2G           # of each data disk, a sparse file
# Behind the two logs there is room for the first write after a promotion.
PROBE_OFFSET=$((2 * LOG_SIZE))
VOLUME_SIZE=$((2 * LOG_SIZE + 8 * MIB))
declare -A LOG DATA
FUSE_COUNT=0

# new_loop VARIABLE FILE [OPTION...]
new_loop() {
  local -n device=$1
  local file=$2
  shift 2
  device=$(losetup -f --show "$@" "$file" 2>>"$WORKDIR/loop.log")
}

file_has_size() {
  [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt 0 ]
}

# attach SOCKET: a file by nbdfuse, and on it a loop device for each log.
attach() {
  FUSE_COUNT=$((FUSE_COUNT + 1))
  local point=$WORKDIR/fuse-$FUSE_COUNT
  mkdir "$point"
  background "$WORKDIR/nbdfuse.log" nbdfuse -C 4 "$point/$VOLUME" --unix "$1"
  FUSE_PID=$STARTED
  FUSE_POINT=$point
  wait_until 15 file_has_size "$point/$VOLUME" || return 1
  new_loop 'LOG[xfs]' "$point/$VOLUME" --direct-io=on \
    --sizelimit "$LOG_SIZE" &&
    new_loop 'LOG[ext4]' "$point/$VOLUME" --direct-io=on \
      --offset "$LOG_SIZE" --sizelimit "$LOG_SIZE"
}

# detach: what attach made, whether its server still lives or not.
detach() {
  detach_loop "${LOG[xfs]}" && detach_loop "${LOG[ext4]}" || return 1
  unmount "$FUSE_POINT"
  end_process "$FUSE_PID"
}

# find_out_about_device: puts into $MISSING what is missing here for a block
# device, nothing where one works. Tried with a small RAM disk, since a
# container may have the device files and not the right to use them.
find_out_about_device() {
  local fs TRY
  MISSING=
  modprobe -q -a loop fuse xfs ext4 2>/dev/null || true
  for fs in xfs ext4; do
    if ! grep -qw "$fs" /proc/filesystems; then
      MISSING="this kernel has no $fs"
      return
    fi
  done
  if [ ! -e /dev/fuse ]; then
    MISSING="there is no /dev/fuse"
    return
  fi
  mkdir "$WORKDIR/fuse-0"
  background "$WORKDIR/nbdfuse.log" \
    nbdfuse "$WORKDIR/fuse-0/try" --command nbdkit -s memory 1M
  if ! wait_until 10 file_has_size "$WORKDIR/fuse-0/try"; then
    MISSING="FUSE does not work here"
  elif ! new_loop TRY "$WORKDIR/fuse-0/try"; then
    MISSING="loop devices do not work here"
  else
    detach_loop "$TRY"
  fi
  unmount "$WORKDIR/fuse-0"
  end_process "$STARTED"
}

make_file_systems() {
  local fs
  for fs in xfs ext4; do
    truncate -s "$DATA_SIZE" "$WORKDIR/$fs.disk"
    new_loop "DATA[$fs]" "$WORKDIR/$fs.disk" ||
      fail "no loop device for the data disk" "$WORKDIR/loop.log"
    mkdir "$WORKDIR/$fs"
  done
  {
    mkfs.xfs -q -f -l "logdev=${LOG[xfs]},size=$LOG_SIZE" "${DATA[xfs]}" &&
      mke2fs -q -F -O journal_dev -b 4096 "${LOG[ext4]}" &&
      mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0 \
        -J "device=${LOG[ext4]}" "${DATA[ext4]}"
  } >"$WORKDIR/mkfs.log" 2>&1 ||
    fail "could not make the file systems" "$WORKDIR/mkfs.log"
}

# mount_file_systems: replays the logs where the file systems died. Each may
# fail by itself, and the reason is in mount.log.
mount_file_systems() {
  mount -t xfs -o "logdev=${LOG[xfs]}" "${DATA[xfs]}" "$WORKDIR/xfs" \
    2>"$WORKDIR/mount.log" &&
    mount -t ext4 -o "journal_path=${LOG[ext4]}" "${DATA[ext4]}" \
      "$WORKDIR/ext4" 2>>"$WORKDIR/mount.log"
}

unmount_file_systems() {
  unmount "$WORKDIR/xfs"
  unmount "$WORKDIR/ext4"
}
