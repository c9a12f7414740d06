# shellcheck shell=bash
# The kernel of the machines: ZFS compiled for it, and the modules they use.
# To be sourced; the caller sets -eu, HERE, and KERNEL and COMMON (fetch.sh).

# compile_zfs UNPACKED WORK: from the packages in UNPACKED, in WORK; the modules
# end up in UNPACKED. Neither headers nor sources are installed here.
compile_zfs() {
  local sources=$1/usr/src extra=$1/lib/modules/$KERNEL/extra
  # Debian's headers name each other by the path they would be installed at.
  sed -i "s|/usr/src|$sources|" "$sources/linux-headers-$KERNEL/Makefile" &&
    mv "$sources"/zfs-* "$2/zfs" &&
    (cd "$2/zfs" && ./configure --with-config=kernel \
      --with-linux="$sources/linux-headers-$COMMON-common" \
      --with-linux-obj="$sources/linux-headers-$KERNEL") &&
    make -C "$2/zfs" -j "$(nproc)" &&
    mkdir "$extra" &&
    find "$2/zfs/module" -name '*.ko' -exec cp -t "$extra" {} + &&
    strip --strip-debug "$extra"/*.ko
}

# pack_modules UNPACKED OUT: those that tests/vm/modules lists, and ZFS, with
# what they need, as a tree below OUT/lib/modules.
pack_modules() {
  local from=$1 out=$2/lib/modules/$KERNEL name list more
  list=
  depmod -b "$from" "$KERNEL" && mkdir -p "$out" || return
  while read -r name; do
    more=$(modprobe -d "$from" -S "$KERNEL" --show-depends "$name") || return
    list+=$more$'\n'
  done < <(sed -e '/^#/d' -e '/^$/d' "$HERE/modules" && echo zfs)
  sed -n 's/^insmod \([^ ]*\).*/\1/p' <<<"$list" | sort -u |
    xargs cp -t "$out" &&
    cp -t "$out" "$from/lib/modules/$KERNEL"/modules.{builtin{,.modinfo},order} &&
    depmod -b "$2" "$KERNEL"
}
