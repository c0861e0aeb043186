# shellcheck shell=bash disable=SC2034,SC2154 # variables go both ways between this file and its users
# Root directories with another Debian, for scripts/majors and scripts/check-package.
# Sourced after lib.sh. All of it is for root only.

# The site from which apt of this machine gets Debian.
find_mirror() {
	# shellcheck disable=SC2016
	[ -z "${DEBIAN_MIRROR-}" ] || { echo "$DEBIAN_MIRROR"; return; }
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(SITE)' 'Origin: Debian' 'Label: Debian' | sort -u | sed -n 1p | grep . ||
		{ echo 'the sources of apt have no mirror of Debian; DEBIAN_MIRROR=URL names one' >&2; return 1; }
}

# Runs COMMAND in a chroot. Mounts and processes end with it.
inside() {   # CHROOT COMMAND...
	# shellcheck disable=SC2016
	unshare --mount --propagation private --pid --fork --kill-child sh -c '
		set -e
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
		exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive BF_QUICK=1 ${NO_COLOR+NO_COLOR="$NO_COLOR"} \
			${BF_QUERIES+BF_QUERIES="$BF_QUERIES"} ${BF_SEED+BF_SEED="$BF_SEED"} "$@"
	' sh "$@"
}

install_in() {   # CHROOT PACKAGE...
	inside "$1" apt-get -qq -y --no-install-recommends install "${@:2}"
}

# A bare Debian, in which packages start no service and create no cluster. The lists of a mirror may be old, so their
# date is not checked.
make_chroot() {   # CHROOT SUITE ARCHITECTURE
	local mirror
	mirror=$(find_mirror)
	unshare --mount --propagation private mmdebstrap --quiet --variant=apt --mode=root --architectures="$3" \
		--skip=cleanup/apt/lists --aptopt='APT::Install-Recommends "false"' --aptopt='APT::Sandbox::User "root"' \
		--aptopt='Acquire::Check-Valid-Until "false"' "$2" "$1" "$mirror"
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
	chmod +x "$1/usr/sbin/policy-rc.d"
	mkdir -p "$1/etc/postgresql-common"
	echo 'create_main_cluster = false' >"$1/etc/postgresql-common/createcluster.conf"
}

chroot_needs='mmdebstrap util-linux debian-archive-keyring'
