# shellcheck shell=bash disable=SC2034,SC2086,SC2154 # variables go both ways between this file and those that source it
# What the scripts and bench/run share: install missing packages on Debian and Ubuntu, build the extension, run it in a
# private server. Sourced, not run; the caller sets command_name and has "set -euo pipefail" on.
#
# Nothing else is written but temporary directories. The server is a private copy of the chosen one: its programs are
# copied, its other files linked into a tree of the same shape, and `make install DESTDIR=...` adds the extension.
# PostgreSQL finds its files relative to its programs.

oldest_major=15
root_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# What scripts/check runs by default: the longest groups first, so that the last ones end at about the same time.
default_groups='tap regress parallel reader recipes joins keys unit build drivers fuzz core lint exchange isolation demo
	symbols format meta'
long_groups='undefined sanitize scenarios'  # what --long runs, too
BF_LONG=${BF_LONG-}

umask 022                               # the server's user has to read what is built here
user_locale=${LC_ALL:-${LC_CTYPE:-${LANG:-C}}}
unset ${!LC_@} MAKEFLAGS MFLAGS MAKELEVEL
export LANG=C LC_ALL=C                  # the output of tools is parsed
unset PGHOST PGPORT PGUSER PGDATABASE PGOPTIONS PGSERVICE PGPASSFILE PGPASSWORD PGDATA     # of another server
export PGCLIENTENCODING=UTF8 PYTHONDONTWRITEBYTECODE=1
sudo='' bold='' plain='' stage='' work='' short_tmp='' step_log=/dev/null pg_config='' python=python3
[ "$(id -u)" -eq 0 ] || sudo=sudo
[ ! -t 1 ] || [ -n "${NO_COLOR-}" ] || bold=$'\e[1m' plain=$'\e[0m'

# The comment at the head of a script is its help text.
usage() {
	sed -n -e '/^# shellcheck /d' -e '2,/^[^#]/s/^# \{0,1\}//p' "$0"
}

usage_error() {
	usage >&2
	exit 2
}

die() {
	printf '%s: %s\n' "$command_name" "$*" >&2
	exit 1
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
	[ "$status" -ne 0 ] || { printf '%s s\n' "$((SECONDS - began))"; return; }
	{ grep -m 1 -B 3 -A 36 'error:' "$step_log" || tail -n 40 "$step_log"; } | sed 's/^/    /' >&2
	die "this step failed; above is what it wrote"
}

clean_up() {
	local status=$? pid_file
	trap '' EXIT INT TERM HUP
	cd /
	find "$work" -name postmaster.pid 2>/dev/null | while read -r pid_file; do
		as_server "$server_bin/pg_ctl" -D "${pid_file%/*}" -m immediate -w -t 20 stop >/dev/null 2>&1 || true
	done
	if [ "$(type -t on_exit)" = function ]; then on_exit || true; fi   # nobody may be there to read what it prints
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

# The path of a unix socket is limited to about 100 bytes, so sockets have a directory of their own.
make_work_dir() {
	work=$(mktemp -d "${TMPDIR:-/tmp}/bloomfilter.XXXXXX")
	short_tmp=$(mktemp -d /tmp/bf.XXXXXX)
	trap clean_up EXIT
	trap 'echo; exit 130' HUP INT TERM
	mkdir "$work/run" "$work/src"
	chmod 755 "$work"
	step_log=$work/step
	choose_server_user
	as_server test -x "$work/run" || die "user $server_user may not enter $work; set TMPDIR to another directory"
}

# --- what is needed ---------------------------------------------------------------------------------------------

major_of() {   # PG_CONFIG
	"$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'
}

# Sets pg_config to that of the newest server, or to '' if there is none. On Debian, /usr/bin/pg_config may belong to
# the client library.
find_server() {
	local candidate
	pg_config=''
	if [ -n "${PG_CONFIG-}" ]; then
		pg_config=$(realpath -s "$(command -v "$PG_CONFIG")") || die "PG_CONFIG=$PG_CONFIG: no such program"
		[ "$(major_of "$pg_config")" -ge "$oldest_major" ] || die "PostgreSQL $oldest_major or later is needed"
		return
	fi
	for candidate in $(command -v pg_config) $(compgen -G '/usr/lib/postgresql/*/bin/pg_config' | sort -V); do
		[ ! -x "$("$candidate" --bindir)/postgres" ] || [ "$(major_of "$candidate")" -lt "$oldest_major" ] ||
			pg_config=$candidate
	done
}

# Prints those of PACKAGE... that are not installed. NN is the major of the server, or of that which can be installed. A
# server that is not one of Debian's has its own files.
not_installed() {
	local package major
	major=$(if [ -n "$pg_config" ]; then major_of "$pg_config"; else apt-cache depends postgresql; fi |
		sed -n 's/.*postgresql-//; /^[0-9]*$/p')
	for package in "$@"; do
		case $pg_config:$package in /usr/*:*|:*) ;; *NN*) continue ;; esac
		package=${package/NN/$major}
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
	done
}

# The package of a server creates a cluster and starts it, unless a drop-in says otherwise.
apt_install() {
	# shellcheck disable=SC2016
	$sudo sh -ec '
		file=/etc/postgresql-common/createcluster.d/bloomfilter.conf
		trap "rm -f $file" EXIT
		mkdir -p "${file%/*}"
		echo "create_main_cluster = false" >$file
		DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -y -o DPkg::Lock::Timeout=300 \
			--no-install-recommends install "$@"
	' sh "$@"
}

# Installs those of PACKAGE... that are missing. Where that cannot be, goes on without them.
try_install() {
	local packages
	command -v apt-get >/dev/null || return 0
	packages=$(not_installed "$@")
	[ -n "$packages" ] || return 0
	$sudo true || { echo "not installed, and cannot be without root or sudo:" $packages; return; }
	step "reading the package lists" eval "$sudo apt-get -qq -o DPkg::Lock::Timeout=300 update || true"
	packages=$(not_installed "$@")
	step "installing ${packages//$'\n'/ }" apt_install $packages
}

# The same for what nothing goes without.
install_deps() {
	find_server
	try_install "$@"
	find_server
	ls "$("${pg_config:-false}" --includedir-server)/postgres.h" "$(command -v make)" "$(command -v gcc)" >/dev/null ||
		die "make, gcc and PostgreSQL $oldest_major or later with its headers are needed (PG_CONFIG=/path/to/pg_config)"
	choose_server_user                      # the package may just have created the user postgres
	[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3    # packaged modules are seen by the packaged Python only
	printf 'using %s (%s)\n' "$("$pg_config" --version)" "$pg_config"
}

build_needs='make gcc libc6-dev libxxhash-dev util-linux postgresql-NN postgresql-server-dev-NN'
test_needs="$build_needs perl libipc-run-perl python3 clang binutils"
bench_needs="$build_needs python3 python3-psycopg2"

# --- building, and a private server -----------------------------------------------------------------------------

# Without what is built, perhaps against another server. The server's user may not be able to read the original.
copy_clean() {   # FROM TO
	mkdir -p "$2"
	tar -C "$1" --exclude=.git --exclude='*.o' --exclude='*.bc' --exclude='*.so' --exclude='./tmp_*' \
		--exclude=./results --exclude=./bench/out -c . | tar -C "$2" -x --no-same-owner
	chmod -R a+rX "$2"
}

# with_llvm=no: bitcode for inlining by the JIT needs the clang that built the server.
make_extension() {   # DIRECTORY MAKE-ARGUMENT...
	make -s --no-print-directory -C "$1" -j "$(nproc)" with_llvm=no PG_CONFIG="$pg_config" "${@:2}"
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

build_step() {
	choose_stage "$work/root"
	copy_clean "$root_dir" "$work/src"
	step "building the extension" stage_server "$work/src"
}

# Only the owner of the socket and root can connect, so "trust" is safe. The caller may set more in server_settings.
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

psql_here() {   # DATABASE ARGUMENT...
	"$server_bin/psql" -X -h "$short_tmp" -U postgres -d "$1" -v ON_ERROR_STOP=1 "${@:2}"
}

# Runs COMMAND with the environment of a client of the throwaway server.
as_client() {   # DATABASE COMMAND...
	PGHOST=$short_tmp PGUSER=postgres PGDATABASE=$1 PATH=$server_bin:$PATH "${@:2}"
}

# Runs a program of bench/ with what it has to know about the server and about how busy the machine was before.
run_bench() {   # PROGRAM OUTPUT COMMAND-LINE ARGUMENT...
	cd /
	PATH=$server_bin:$PATH $python "$work/src/bench/$1" --programs="$server_bin" \
		--socket-dir="$short_tmp" --data-dir="$work/run/data" --sources="$work/src" --output="$2" --command="$3" \
		--pg-config="$pg_config" --load="$load_before" \
		--revision="$(git -C "$root_dir" log -1 --format='revision %h' 2>/dev/null || echo 'no revision')" "${@:4}"
}
