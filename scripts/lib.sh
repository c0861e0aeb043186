# shellcheck shell=bash disable=SC2034,SC2154 # variables go both ways between this file and those that source it
# What the scripts and bench/run share: install what is missing, build the extension, run it in a private server.
# Sourced, not run; the caller sets command_name and has "set -euo pipefail" on.
#
# Nothing outside one temporary directory is written, except that missing packages are installed on Debian and
# Ubuntu. The server is a private copy of the chosen one: its programs are copied, its other files are linked into a
# tree of the same shape, and `make install DESTDIR=...` adds the extension. PostgreSQL finds its files relative to its
# programs, so this needs no write access to the installed server.

oldest_major=15
root_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

umask 022                               # the server's user has to read what is built here
user_locale=${LC_ALL:-${LC_CTYPE:-${LANG:-C}}}
# shellcheck disable=SC2086 # names are words
unset ${!LC_@} MAKEFLAGS MFLAGS MAKELEVEL
export LANG=C LC_ALL=C                  # the output of tools is parsed
for variable in ${!PG@}; do             # PGHOST and PGPORT of the user would lead to another server
	case $variable in PG_CONFIG|PG_TEST_TIMEOUT_DEFAULT|PGCTLTIMEOUT) ;; *) unset "$variable" ;; esac
done
export PGCLIENTENCODING=UTF8 PYTHONDONTWRITEBYTECODE=1

# --- output -----------------------------------------------------------------------------------------------------

bold='' dim='' red='' green='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ] && [ "${TERM-dumb}" != dumb ]; then
	bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
fi

# The comment at the head of a script is its help text.
usage() {
	sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
}

usage_error() {
	usage >&2
	exit 2
}

die() {
	printf '%s%s: %s%s\n' "$red" "$command_name" "$*" "$plain" >&2
	exit 1
}

indented() {
	sed 's/^/    /'
}

# step TEXT COMMAND...: prints TEXT and the seconds that COMMAND took; its output goes to a log, which is shown if it
# fails. COMMAND runs in a subshell with set -e.
step() {
	local began=$SECONDS status
	printf '%s … ' "$1"
	set +e
	(set -e; "${@:2}") </dev/null >"$step_log" 2>&1
	status=$?
	set -e
	if [ "$status" -ne 0 ]; then
		printf '%sfailed%s\n' "$red" "$plain"
		{ grep -m 1 -B 3 -A 36 'error:' "$step_log" || tail -n 40 "$step_log"; } | indented >&2
		die "this step failed; above is what it wrote"
	fi
	printf '%s s\n' "$((SECONDS - began))"
}

# --- the temporary directory ------------------------------------------------------------------------------------

stage='' work='' short_tmp='' step_log=/dev/null job='' pg_config=''

# Runs COMMAND as a process group, which clean_up stops as a whole.
run_as_job() {
	local status=0
	set -m
	"$@" </dev/null &
	set +m
	job=$!
	wait "$job" || status=$?
	job=''
	return "$status"
}

clean_up() {
	local status=$? pid_file
	trap '' INT TERM HUP
	trap - EXIT
	cd /
	if [ -n "$job" ]; then
		kill -TERM -- "-$job" 2>/dev/null && sleep 2
		kill -KILL -- "-$job" 2>/dev/null || true
	fi
	[ -z "$work" ] || find "$work" -name postmaster.pid 2>/dev/null | while read -r pid_file; do
		as_server "$server_bin/pg_ctl" -D "${pid_file%/*}" -m immediate -w -t 20 stop >/dev/null 2>&1 || true
	done
	if [ "$(type -t on_exit)" = function ]; then on_exit; fi
	rm -rf "$work" "$short_tmp" 2>/dev/null || { sleep 2; rm -rf "$work" "$short_tmp" 2>/dev/null; } || true
	exit "$status"
}

# PostgreSQL does not run as root: then the server, and every program that starts one, runs as another user.
as_server() {
	$become_server_user env HOME="$work/run" "$@"
}

choose_server_user() {
	server_user='' become_server_user=''
	[ "$(id -u)" -eq 0 ] || return 0
	server_user=nobody
	! id postgres >/dev/null 2>&1 || server_user=postgres
	become_server_user="setpriv --reuid=$server_user --regid=$(id -g "$server_user") --init-groups --"
	chown "$server_user" "$work/run" "$short_tmp"
}

# TMPDIR may be closed to other users, mounted noexec, or have a name that make splits. The path of a unix socket is
# limited to about 100 bytes.
make_work_dir() {
	local parent
	trap clean_up EXIT
	trap 'echo; exit 129' HUP
	trap 'echo; exit 130' INT
	trap 'echo; exit 143' TERM
	for parent in "${TMPDIR:-/tmp}" /tmp /var/tmp; do
		case $parent in *[!A-Za-z0-9/._+-]*) continue ;; esac
		work=$(mktemp -d "$parent/bloomfilter.XXXXXX" 2>/dev/null) || continue
		work=$(cd "$work" && pwd -P)
		short_tmp=$work/tmp
		[ "${#work}" -le 50 ] || short_tmp=$(mktemp -d /tmp/bf.XXXXXX)
		mkdir -p "$short_tmp" "$work/run" "$work/logs" "$work/src"
		chmod 755 "$work"
		chmod 700 "$short_tmp"
		choose_server_user
		printf '#!/bin/sh\n' >"$work/run/try"
		chmod 755 "$work/run/try"
		step_log=$work/logs/step
		! as_server "$work/run/try" 2>/dev/null || return 0
		rm -rf "$work" "$short_tmp"
	done
	work=''
	die "no directory for temporary files that the server's user may enter and run programs in; set TMPDIR"
}

# --- what is needed ---------------------------------------------------------------------------------------------

# Debian's server packages bring a clang under the name clang-NN only.
find_clang() {
	compgen -c clang | grep -xE 'clang(-[0-9]+)?' | sort -V | sed -n 1p | grep .
}

# Packaged modules are seen by the packaged Python only, which need not be the first in PATH.
find_python() {   # STATEMENT that it can run
	local name
	for name in python3 /usr/bin/python3; do
		! "$name" -c "$1" 2>/dev/null || { echo "$name"; return; }
	done
	return 1
}

major_of() {
	"$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'
}

# Sets pg_config to that of the newest server, or to '' if there is none. On Debian, /usr/bin/pg_config may belong to
# the client library.
find_server() {
	local candidate
	pg_config=''
	if [ -n "${PG_CONFIG-}" ]; then
		pg_config=$(command -v "$PG_CONFIG") || die "PG_CONFIG=$PG_CONFIG: no such program"
		pg_config=$(realpath -s "$pg_config")
		[ "$(major_of "$pg_config")" -ge "$oldest_major" ] ||
			die "$("$pg_config" --version) is too old, $oldest_major or later is needed"
		return
	fi
	for candidate in "$(command -v pg_config || true)" $(compgen -G '/usr/lib/postgresql/*/bin/pg_config' | sort -V); do
		if [ -n "$candidate" ] && [ -x "$("$candidate" --bindir 2>/dev/null)/postgres" ] &&
			[ "$(major_of "$candidate")" -ge "$oldest_major" ]; then
			pg_config=$candidate
		fi
	done
}

# The version of a package that another one stands for: that of postgresql or clang in this release.
default_version() {   # PACKAGE
	apt-cache depends "$1" | sed -n "s/^ *Depends: $1-\([0-9]*\)\$/\1/p"
}

# The major of the server that is there, or else of that which can be installed.
server_major() {
	if [ -n "$pg_config" ]; then major_of "$pg_config"; else default_version postgresql; fi
}

# The names of packages, with NN as the major of the server and CC as that of clang. A server that is not one of
# Debian's has its own files.
packages_of() {   # PACKAGE...
	local package major clang
	major=$(server_major)
	clang=$(find_clang) && clang=$("$clang" -dumpversion) || clang=$(default_version clang)
	for package in "$@"; do
		case $pg_config:$package in
			/usr/lib/postgresql/*:*|/usr/bin/*:*|:*) ;;
			*NN*) continue ;;
		esac
		package=${package/NN/$major}
		echo "${package/CC/${clang%%.*}}"
	done
}

# Prints those of PACKAGE... that are not installed.
not_installed() {
	local package
	for package in $(packages_of "$@"); do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
	done
}

sudo=sudo
[ "$(id -u)" -ne 0 ] || sudo=''

can_install() {
	command -v apt-get >/dev/null || return
	[ -z "$sudo" ] || { command -v sudo >/dev/null && sudo true; }
}

# If a package source is broken and needed, the installation fails and says so.
apt_update() {
	$sudo apt-get -qq -o DPkg::Lock::Timeout=300 update || echo "apt-get update: exit status $?"
}

# The package of a server creates a cluster and starts it, unless a drop-in says otherwise. The drop-in is there as
# long as the installation runs.
apt_install() {
	# shellcheck disable=SC2016
	$sudo sh -c '
		set -e
		dir=/etc/postgresql-common/createcluster.d
		trap "rm -f $dir/bloomfilter.conf; rmdir --ignore-fail-on-non-empty -p $dir 2>/dev/null || :" EXIT
		trap "exit 130" HUP INT TERM
		mkdir -p "$dir"
		echo "create_main_cluster = false" >"$dir/bloomfilter.conf"
		DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none NEEDRESTART_SUSPEND=1 apt-get \
			-y -o DPkg::Lock::Timeout=300 --no-install-recommends install "$@"
	' sh "$@"
}

# Installs those of PACKAGE... that are missing. Where that cannot be, goes on without them.
try_install() {
	local packages
	! command -v dpkg-query >/dev/null || packages=$(not_installed "$@" | paste -s -d ' ')
	[ -n "${packages-}" ] || return 0
	if ! can_install; then
		printf '%snot installed, and cannot be without apt and root or sudo: %s%s\n' "$dim" "$packages" "$plain"
		return
	fi
	step "reading the package lists" apt_update
	# shellcheck disable=SC2046,SC2086 # names are words
	packages=$(not_installed "$@" | paste -s -d ' ')
	# shellcheck disable=SC2086
	step "installing $packages" apt_install $packages
}

# The same for what nothing goes without.
install_deps() {
	find_server
	try_install "$@"
	find_server
	{ [ -f "$("${pg_config:-false}" --includedir-server)/postgres.h" ] && command -v make gcc >/dev/null; } ||
		die "make, gcc and PostgreSQL $oldest_major or later with its headers are needed, such as by the packages $*;" \
			"PG_CONFIG=/path/to/pg_config chooses a server, and https://wiki.postgresql.org/wiki/Apt has newer ones"
	choose_server_user                      # the package may just have created the user postgres
	printf '%susing %s (%s)%s\n' "$dim" "$("$pg_config" --version)" "$pg_config" "$plain"
}

build_needs='make gcc libc6-dev libxxhash-dev util-linux postgresql-NN postgresql-server-dev-NN'
test_needs="$build_needs perl libipc-run-perl python3 clang binutils"
bench_needs="$build_needs python3 python3-psycopg2"

# --- building, and a private server -----------------------------------------------------------------------------

remove_objects() {   # DIRECTORY
	find "$1" \( -name '*.o' -o -name '*.bc' -o -name '*.so' -o -name '*.gc??' \) -delete
}

# The server's user may not be able to read the checkout.
copy_sources() {
	local entry
	for entry in "$root_dir"/*; do
		case ${entry##*/} in
			results|tmp_*|output_iso|log) ;;
			*) cp -R "$entry" "$work/src/" ;;
		esac
	done
	remove_objects "$work/src"             # they may be built against another server
	chmod -R a+rX "$work/src"
}

# with_llvm=no: bitcode for inlining by the JIT needs the clang that built the server.
make_extension() {   # DIRECTORY MAKE-ARGUMENT...
	make -s --no-print-directory -C "$1" -j "$(nproc)" with_llvm=no PG_CONFIG="$pg_config" "${@:2}"
}

# A copy of the sources, built with other options.
build_copy() {   # DIRECTORY MAKE-ARGUMENT...
	cp -R "$work/src" "$1" && remove_objects "$1" && make_extension "$@" all
}

# Links the files of the server's directory $1 into the private copy, except an installed bloomfilter.
link_tree() {
	local entry
	mkdir -p "$stage$1"
	for entry in "$1"/*; do
		case ${entry##*/} in
			bloomfilter*) ;;
			extension|bitcode|plugins) link_tree "$entry" ;;
			*) ln -sf "$entry" "$stage$1/" ;;
		esac
	done
}

choose_stage() {   # DIRECTORY of the private copy of the server
	stage=$1
	server_bin=$stage$("$pg_config" --bindir)
	pgxs_test=$(dirname "$(dirname "$("$pg_config" --pgxs)")")/test
}

stage_server() {   # SOURCES MAKE-ARGUMENT...
	make_extension "$@" all || return
	make_extension "$@" DESTDIR="$stage" install || return
	mkdir -p "$server_bin"
	cp -RL "$("$pg_config" --bindir)/." "$server_bin"
	link_tree "$("$pg_config" --pkglibdir)"
	link_tree "$("$pg_config" --sharedir)"
	chmod -R a+rX "$stage"
	[ -z "$server_user" ] || chown -R "$server_user" "$1"   # pg_regress writes there
}

build_extension() {   # MAKE-ARGUMENT...
	copy_sources
	stage_server "$work/src" "$@"
}

build_step() {
	choose_stage "$work/root"
	step "building the extension" build_extension
}

# Only the owner of the socket and root can connect, so "trust" is safe. Data need not survive a power failure. The
# caller may set more in server_settings.
start_server() {
	local data=$work/run/data
	as_server "$server_bin/initdb" -D "$data" -U postgres -A trust --no-locale -E UTF8 --no-sync
	as_server tee -a "$data/postgresql.conf" >/dev/null <<-CONF
		listen_addresses = ''
		unix_socket_directories = '$short_tmp'
		unix_socket_permissions = 0700
		fsync = off
		max_wal_size = 4GB
		${server_settings-}
	CONF
	as_server "$server_bin/pg_ctl" -D "$data" -l "$work/run/server.log" -w -t 60 start ||
		{ cat "$work/run/server.log"; return 1; }
	psql_here postgres -q -c 'CREATE DATABASE demo'
}

server_step() {
	step "starting a throwaway server" start_server
}

psql_here() {   # DATABASE ARGUMENT...
	"$server_bin/psql" -X -h "$short_tmp" -U postgres -d "$1" -v ON_ERROR_STOP=1 "${@:2}"
}

# Runs COMMAND with the environment of a client of the throwaway server.
as_client() {   # DATABASE COMMAND...
	PGHOST=$short_tmp PGUSER=postgres PGDATABASE=$1 PATH=$server_bin:$PATH "${@:2}"
}

run_demo() {   # ARGUMENT... of psql
	cd "$work/src/demo" && psql_here demo -f demo.sql "$@" </dev/null
}

# Runs a program of bench/ with what it has to know about the server and about how busy the machine was before.
run_bench() {   # PROGRAM OUTPUT COMMAND-LINE ARGUMENT...
	cd /
	PATH=$server_bin:$PATH "$(find_python 'import psycopg2')" "$work/src/bench/$1" --programs="$server_bin" \
		--socket-dir="$short_tmp" --data-dir="$work/run/data" --sources="$work/src" --output="$2" --command="$3" \
		--pg-config="$pg_config" --load="$load_before" \
		--revision="$(git -C "$root_dir" log -1 --format='revision %h' 2>/dev/null || echo 'no revision')" "${@:4}"
}
