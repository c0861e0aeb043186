# shellcheck shell=bash disable=SC2034,SC2154 # variables go both ways between this file and its users
# Root directories with another Debian, for scripts/majors and scripts/check-package. Sourced after lib.sh; as root.

chroot_needs='mmdebstrap util-linux debian-archive-keyring'

# The site from which apt of this machine gets Debian.
find_mirror() {
	# shellcheck disable=SC2016
	local sites=(apt-get indextargets --format '$(SITE)' 'Origin: Debian' 'Label: Debian')
	echo "${DEBIAN_MIRROR:-$("${sites[@]}" | sort -u | head -n 1)}"
}

# Runs COMMAND in a chroot, with $work mounted on /mnt. Mounts and processes end with it.
inside() {   # CHROOT COMMAND...
	# shellcheck disable=SC2016
	unshare --mount --propagation private --pid --fork --kill-child sh -ec '
		root=$1 work=$2
		shift 2
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
		mount --bind "$work" "$root/mnt"
		exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive BF_LONG="$BF_LONG" BF_QUERIES="$BF_QUERIES" BF_SEED="$BF_SEED" \
			PROVE_TESTS="$PROVE_TESTS" "$@"
	' sh "$1" "$work" "${@:2}"
}
export BF_LONG BF_QUERIES=${BF_QUERIES-} BF_SEED=${BF_SEED-} PROVE_TESTS=${PROVE_TESTS-}

install_in() {   # CHROOT PACKAGE...
	inside "$1" apt-get -qq -y --no-install-recommends install "${@:2}"
}

# A bare Debian, in which packages start no service and create no cluster. The lists of a mirror may be old, so their
# date is not checked.
make_chroot() {   # CHROOT SUITE ARCHITECTURE
	unshare --mount --propagation private mmdebstrap --quiet --variant=apt --mode=root --architectures="$3" \
		--skip=cleanup/apt/lists --aptopt='APT::Install-Recommends "false"' --aptopt='APT::Sandbox::User "root"' \
		--aptopt='Acquire::Check-Valid-Until "false"' "$2" "$1" "$(find_mirror)"
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
	chmod +x "$1/usr/sbin/policy-rc.d"
	mkdir -p "$1/etc/postgresql-common"
	echo 'create_main_cluster = false' >"$1/etc/postgresql-common/createcluster.conf"
}
