# shellcheck shell=bash
# The checks of scripts/run-tests that are not tests of a suite. To be sourced;
# the caller sets ROOT.

# build DIR [MESON OPTION...]: configures where needed, then builds all.
build() {
  local dir=$1
  shift
  { [ -f "$dir/build.ninja" ] || meson setup "$dir" "$ROOT" "$@"; } &&
    meson configure "$dir" -Dwerror=true &&
    ninja -C "$dir"
}

# Files of the checkout, with or without git.
sources() {
  cd "$ROOT" &&
    { git ls-files -co --exclude-standard 2>/dev/null ||
      find . -path ./build -prune -o -type f -print; }
}

check_format() {
  cd "$ROOT" || return
  sources | grep '\.[ch]$' | xargs -d '\n' clang-format-14 --dry-run -Werror
}

check_shell() {
  local file list=()
  cd "$ROOT" || return
  while read -r file; do
    if [ -f "$file" ] && head -n 1 "$file" |
      grep -qE '^#!.*[/ ](ba|da)?sh( |$)|^# shellcheck shell='; then
      list+=("$file")
    fi
  done < <(sources)
  echo "${#list[@]} scripts"
  [ ${#list[@]} -gt 0 ] && shellcheck -x -P SCRIPTDIR "${list[@]}"
}

check_manual() {
  local file count=0
  cd "$ROOT" || return
  while read -r file; do
    podchecker -warnings "$file" || return 1
    pod2man --errors=die "$file" >/dev/null || return 1
    count=$((count + 1))
  done < <(sources | grep '\.pod$')
  echo "$count pages"
  [ "$count" -gt 0 ]
}

# What would be left behind: loop devices, mounts, servers, machines, the
# holders of network namespaces, and directories.
left_overs() {
  local name
  losetup --noheadings --output NAME,BACK-FILE 2>/dev/null | sort
  grep -E 'twinlog|nbdfuse' /proc/self/mounts | sort
  # One by one, and of 15 characters at most: pgrep -x knows no longer names.
  for name in nbdkit nbdfuse qemu-system-x86; do
    pgrep -x "$name" -a || true
  done | sort
  pgrep -fx 'sleep infinity' -a | sort
  ls -d "${TMPDIR:-/tmp}"/twinlog* 2>/dev/null || true
  ip netns list 2>/dev/null | sort
  return 0
}

# nothing_left_behind FILE: compares with what left_overs said before.
nothing_left_behind() {
  diff "$1" <(left_overs)
}
