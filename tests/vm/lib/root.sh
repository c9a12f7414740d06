# shellcheck shell=bash
# The root file system of the machines, which is their initramfs. To be
# sourced; the caller sets -eu, HERE, ROOT (the checkout), BUILD, and has fail.

LIBRARIES=/usr/lib/x86_64-linux-gnu

# find_program UNPACKED NAME: its path, there or on this machine.
find_program() {
  local dir
  for dir in sbin bin; do
    if [ -f "$1/$dir/$2" ]; then
      echo "$1/$dir/$2"
      return
    fi
  done
  PATH=$PATH:/usr/sbin:/sbin command -v "$2" ||
    fail "$2 is missing; scripts/install-packages test installs it"
}

# copy_libraries UNPACKED OUT FILE...: all that these are linked with.
copy_libraries() {
  local unpacked=$1 out=$2 list
  shift 2
  list=$(LD_LIBRARY_PATH=$unpacked/lib/x86_64-linux-gnu:$unpacked$LIBRARIES \
    ldd "$@" | sed -n -e 's/.* => \(.*\) (0x.*/\1/p' -e '/not found/p' |
    sort -u)
  if [[ $list = *"not found"* ]]; then
    fail "a library is missing: $(grep 'not found' <<<"$list" | head -n 1)"
  fi
  xargs -d '\n' cp -L -t "$out$LIBRARIES" <<<"$list"
}

# make_root BASE OUT: everything but our own programs.
make_root() {
  local unpacked=$1/unpacked out=$2 dir name files=()
  mkdir -p "$out"/usr/{bin,lib64} "$out$LIBRARIES/nbdkit" \
    "$out"/{dev,etc,mnt,proc,root,run,sys,tmp,var/lib/twinlog,var/log}
  for dir in bin lib lib64; do
    ln -s "usr/$dir" "$out/$dir"
  done
  ln -s usr/bin "$out/sbin"
  ln -s bin "$out/usr/sbin"
  cp -r "$1/modules/lib/modules" "$out/lib"
  cp "$unpacked/bin/busybox" "$out/bin"
  for name in $("$unpacked/bin/busybox" --list); do
    [ "$name" = busybox ] || ln -s busybox "$out/bin/$name"
  done
  while read -r name; do
    name=$(find_program "$unpacked" "$name")
    files+=("$name")
  done < <(sed -e '/^#/d' -e '/^$/d' "$HERE/programs")
  cp --remove-destination -L -t "$out/bin" "${files[@]}"
  copy_libraries "$unpacked" "$out" "${files[@]}"
  cp -L /lib64/ld-linux-x86-64.so.2 "$out/lib64"
  # Loaded by name, when a thread ends.
  cp -L -t "$out$LIBRARIES" /lib/x86_64-linux-gnu/libgcc_s.so.1
  cp -r /usr/lib/x86_64-linux-gnu/nbdkit/{plugins,filters} \
    "$out$LIBRARIES/nbdkit"
  mkdir -p "$out/lib/udev/rules.d" "$out/lib/systemd"
  cp -t "$out/lib/udev/rules.d" \
    "$unpacked/lib/udev/rules.d"/60-{block,persistent-storage}.rules
  ln -s /bin/udevadm "$out/lib/systemd/systemd-udevd"
  cp /etc/mke2fs.conf "$out/etc"
  for name in l/linux v/vt100 x/xterm x/xterm-256color; do
    install -D -m 644 "/lib/terminfo/$name" "$out/lib/terminfo/$name"
  done
  cp -r "$HERE/guest/." "$out"
}

# add_ours BASE OUT: the plugin, the command, the scripts and udev's rules, the
# agent and the writer that knows what was acknowledged to it.
add_ours() {
  local plugin=$BUILD/plugins/twinlog/nbdkit-twinlog-plugin.so out=$2 files
  files=("$BUILD/client/twinlog" "$BUILD/tests/vm/twinlog-agent"
    "$BUILD/tests/integration/oracle/fsync-writer")
  [ -f "$plugin" ] || fail "$plugin is missing; build first"
  cp -t "$out/bin" "${files[@]}" "$ROOT"/scripts/twinlog-*
  mkdir -p "$out/bin/lib"
  cp -t "$out/bin/lib" "$ROOT/scripts/lib/takeover.sh"
  cp -t "$out$LIBRARIES/nbdkit/plugins" "$plugin"
  find "$ROOT/scripts" -name '*.rules' -exec cp -t "$out/lib/udev/rules.d" {} +
  copy_libraries "$1/unpacked" "$out" "$plugin" "${files[@]}"
}
