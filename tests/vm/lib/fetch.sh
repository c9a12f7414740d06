# shellcheck shell=bash
# Debian's packages, fetched with an apt configuration of its own: the lists,
# the sources and the packages of this machine stay as they are. To be sourced;
# the caller sets -eu, HERE (tests/vm) and has say and fail.

# own_apt DIR COMMAND...: an apt command with the configuration in DIR.
own_apt() {
  local dir=$1
  shift
  APT_CONFIG=$dir/apt.conf "$@"
}

# configure_apt DIR: the mirrors that this machine has, and contrib.
configure_apt() {
  local dir=$1 site release
  mkdir -p "$dir/lists" "$dir/cache" "$dir/debs"
  while read -r site release; do
    echo "deb $site $release main contrib"
  done >"$dir/sources.list" < <(
    # shellcheck disable=SC2016  # these are apt's variables
    apt-get indextargets --format '$(REPO_URI) $(RELEASE)' \
      'Created-By: Packages' 'Origin: Debian' | sort -u)
  [ -s "$dir/sources.list" ] ||
    fail "apt knows no mirror of Debian; run apt-get update"
  cat >"$dir/apt.conf" <<END
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$dir/lists";
Dir::Cache "$dir/cache";
APT::Sandbox::User "root";
END
}

# newest_kernel DIR: such as 6.1.0-57-amd64.
newest_kernel() {
  own_apt "$1" apt-cache depends linux-image-amd64 |
    sed -n 's/^ *Depends: linux-image-\(6\.1\..*\)$/\1/p' | head -n 1
}

# fetch DIR: into DIR/debs what tests/vm/packages lists; sets KERNEL, and
# COMMON, the same without its flavour.
fetch() {
  local dir=$1 names=()
  configure_apt "$dir" && own_apt "$dir" apt-get update -q || return
  KERNEL=$(newest_kernel "$dir")
  [ -n "$KERNEL" ] || fail "Debian has no kernel 6.1 here"
  COMMON=${KERNEL%-*}
  mapfile -t names < <(sed -e '/^#/d' -e '/^$/d' -e "s/KERNEL/$KERNEL/" \
    -e "s/COMMON/$COMMON/" "$HERE/packages")
  (cd "$dir/debs" && own_apt "$dir" apt-get download -q "${names[@]}")
}
