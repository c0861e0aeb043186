# shellcheck shell=bash disable=SC2034,SC2154 # variables go both ways between this file and those that source it
# What scripts/demo, scripts/check and bench/run share: find or install what is needed, build the extension, and run
# it in a PostgreSQL of its own. Sourced, not run; the caller sets `command_name` and `steps` (how many steps it will
# announce) and has `set -euo pipefail` on.
#
# Nothing outside one temporary directory is written, except that missing packages are installed on Debian and
# Ubuntu. The sources are copied there and built there, so the checkout stays as it is and may lie where the
# server's user cannot read it.
#
# The server is a private copy of the chosen one: its programs are copied, everything else it reads is linked, into
# a tree of the same shape below the temporary directory, and `make install DESTDIR=...` adds the extension.
# PostgreSQL finds its files relative to where its programs lie (its own `make check` lives by that), so the same
# few lines serve packaged and self-built servers of every version, with no right to write into them.

oldest_major=${BF_OLDEST_MAJOR:-14}     # scripts/majors has reason to go below
root_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

umask 022                               # the server's user has to read what is built here
user_locale=()
for variable in LANG ${!LC_@}; do
	if [ -n "${!variable-}" ]; then
		user_locale+=("$variable=${!variable}")
		unset "$variable"
	fi
done
export LANG=C LC_ALL=C                  # tools are read by their English messages
export PGCLIENTENCODING=UTF8
unset MAKEFLAGS MFLAGS MAKELEVEL
for variable in ${!PG@}; do             # a PGHOST or PGPORT of the user's leads to a server that is not ours
	case $variable in
		PG_CONFIG|PGCLIENTENCODING|PG_TEST_TIMEOUT_DEFAULT|PGCTLTIMEOUT) ;;
		*) unset "$variable" ;;
	esac
done

# --- output -----------------------------------------------------------------------------------------------------

bold='' dim='' red='' green='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ] && [ "${TERM-dumb}" != dumb ]; then
	bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
fi

die() {
	printf '%s%s: %s%s\n' "$red" "$command_name" "$*" "$plain" >&2
	exit 1
}

indented() {
	sed 's/^/    /'
}

step_number=0
ticker=

# On a terminal the seconds of a running step are counted, and what "progress_of_step", if defined, has to add.
tick() {
	local text=$1 began=$SECONDS
	while sleep 1; do
		printf '\r\e[K%s%s%s s%s' "$text" "$dim" "$((SECONDS - began))" "$plain"
		if [ "$(type -t progress_of_step)" = function ]; then
			printf '%s%s%s' "$dim" "$(progress_of_step)" "$plain"
		fi
	done
}

stop_ticker() {
	if [ -n "$ticker" ]; then
		kill "$ticker" 2>/dev/null || true
		wait "$ticker" 2>/dev/null || true
		ticker=
		printf '\r\e[K'
	fi
}

# step TEXT COMMAND...: one line with what is done and how long it took; COMMAND's output is kept in a log and
# shown when it fails. COMMAND runs in a subshell, so a function may rely on set -e.
step() {
	local text began=$SECONDS status
	step_number=$((step_number + 1))
	text="${bold}[$step_number/$steps]$plain $1 … "
	shift
	printf '%s' "$text"
	if [ -t 1 ]; then
		tick "$text" &
		ticker=$!
	fi
	set +e
	(set -e; "$@") </dev/null >"$step_log" 2>&1
	status=$?
	set -e
	if [ -t 1 ]; then
		stop_ticker
		printf '%s' "$text"
	fi
	if [ "$status" -ne 0 ]; then
		printf '%sfailed%s\n' "$red" "$plain"
		# of a compiler's errors the first counts, of most other output the end
		awk '/error:/ && !first { first = NR } { line[NR] = $0 }
			END {
				from = first ? first - 3 : NR - 39
				for (i = from; i < from + 40 && i <= NR; i++) if (i > 0) print line[i]
			}' "$step_log" | indented >&2
		die "this step failed; above is what it wrote"
	fi
	printf '%s s\n' "$((SECONDS - began))"
}

# --- the temporary directory, and leaving nothing behind --------------------------------------------------------

stage='' work='' short_tmp='' step_log=/dev/null
jobs_to_stop=''                         # process groups, see check

stop_jobs() {
	local group tenths=100
	for group in $jobs_to_stop; do
		kill -TERM -- "-$group" 2>/dev/null || true
	done
	for group in $jobs_to_stop; do
		while kill -0 -- "-$group" 2>/dev/null; do
			if [ "$tenths" -eq 0 ]; then
				kill -KILL -- "-$group" 2>/dev/null || true
				break
			fi
			tenths=$((tenths - 1))
			sleep 0.1
		done
	done
}

cleanup() {
	local status=$? pid_file
	trap '' INT TERM HUP
	trap - EXIT
	stop_ticker
	cd /
	stop_jobs
	if [ -n "$work" ]; then
		find "$work" -name postmaster.pid 2>/dev/null | while read -r pid_file; do
			as_server "$server_bin/pg_ctl" -D "$(dirname "$pid_file")" -m immediate -w -t 20 stop >/dev/null 2>&1 || true
		done
		# a program that is just dying may still write
		rm -rf "$work" "$short_tmp" 2>/dev/null || { sleep 2; rm -rf "$work" "$short_tmp" || true; }
	fi
	if [ "$(type -t last_words)" = function ]; then
		last_words "$status"
	fi
	exit "$status"
}

trap cleanup EXIT
trap 'echo; exit 129' HUP
trap 'echo; exit 130' INT
trap 'echo; exit 143' TERM

# PostgreSQL refuses to run as root: then the server, and every program that starts one, runs as another user.
# setpriv becomes that program, so that a signal reaches it; runuser stays in between (and Busybox's setpriv
# changes no users).
server_user='' become_server_user=''

choose_server_user() {
	local group
	[ "$(id -u)" -eq 0 ] || return 0
	server_user=nobody
	if id postgres >/dev/null 2>&1; then
		server_user=postgres
	fi
	group=$(id -g "$server_user")
	become_server_user="setpriv --reuid=$server_user --regid=$group --init-groups --"
	if ! $become_server_user true 2>/dev/null; then
		become_server_user="runuser -u $server_user --"
	fi
	chown "$server_user" "$work/run" "$short_tmp"
}

as_server() {
	$become_server_user env HOME="$work/run" "$@"
}

make_work_dir() {
	local parent
	# A TMPDIR may be closed to other users, mounted noexec, or named so that make takes it for two words.
	for parent in "${TMPDIR:-/tmp}" /tmp /var/tmp; do
		case $parent in *[!A-Za-z0-9/._+-]*) continue ;; esac
		work=$(mktemp -d "$parent/bloomfilter.XXXXXX" 2>/dev/null) || continue
		work=$(cd "$work" && pwd -P)
		chmod 755 "$work"
		# The address of a unix socket has about 100 bytes, and tests put directories of their own below TMPDIR.
		short_tmp=$work/tmp
		if [ "${#work}" -gt 50 ]; then
			short_tmp=$(mktemp -d /tmp/bf.XXXXXX)
		fi
		mkdir -p "$short_tmp" "$work/run" "$work/logs" "$work/src"
		chmod 700 "$short_tmp"
		choose_server_user
		printf '#!/bin/sh\n' >"$work/run/try"
		chmod 755 "$work/run/try"
		if as_server "$work/run/try" 2>/dev/null; then
			step_log=$work/logs/step
			return
		fi
		rm -rf "$work" "$short_tmp"
	done
	work=
	die "no directory for temporary files that ${server_user:-this user} may enter and run programs in; set TMPDIR"
}

# --- what is needed ---------------------------------------------------------------------------------------------

has_header() {
	printf '#include <%s>\n' "$1" | "$(first_command gcc cc clang)" -E - >/dev/null 2>&1
}

first_command() {
	local name
	for name in "$@"; do
		if command -v "$name" >/dev/null; then
			printf '%s\n' "$name"
			return
		fi
	done
	return 1
}

# Debian's server packages bring a clang of one version, under the name clang-NN only.
find_clang() {
	first_command clang || basename "$(printf '%s\n' /usr/bin/clang-[0-9]* | grep -E '/clang-[0-9]+$' | tail -n 1)" |
		grep .
}

has_libfuzzer() {
	local compiler
	compiler=$(find_clang) || return
	printf 'int LLVMFuzzerTestOneInput(void);\nint LLVMFuzzerTestOneInput(void) { return 0; }\n' |
		"$compiler" -fsanitize=fuzzer,address,undefined -x c -o /dev/null - 2>/dev/null
}

# Packaged modules are seen by the packaged Python only, which need not be the first in PATH.
find_python() {   # a STATEMENT it can run
	local name
	for name in python3 /usr/bin/python3; do
		if "$name" -c "$1" 2>/dev/null; then
			printf '%s\n' "$name"
			return
		fi
	done
	return 1
}

# Whether the chosen server has hll, or what PostgreSQL's contrib modules are known by.
has_extension() {
	local file=$1.control
	[ "$1" != contrib ] || file=postgres_fdw.control
	[ -n "$pg_config" ] && [ -f "$("$pg_config" --sharedir)/extension/$file" ]
}

# the major version of the newest server among Debian's directories, if it is new enough
newest_installed_major() {
	local program major newest=0
	for program in /usr/lib/postgresql/*/bin/postgres; do
		major=${program#/usr/lib/postgresql/}
		major=${major%%/*}
		case $major in ''|*[!0-9]*) continue ;; esac
		if [ -x "$program" ] && [ "$major" -gt "$newest" ]; then
			newest=$major
		fi
	done
	if [ "$newest" -ge "$oldest_major" ]; then
		printf '%s\n' "$newest"
	fi
}

major_of() {
	"$1" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'
}

# Sets pg_config to the chosen server's, to '' where there is none yet, and debian_major on Debian.
find_server() {
	local candidate
	pg_config='' debian_major=''
	if [ -n "${PG_CONFIG-}" ]; then
		pg_config=$(command -v "$PG_CONFIG") || die "PG_CONFIG=$PG_CONFIG: no such program"
		pg_config=$(cd "$(dirname "$pg_config")" && pwd)/$(basename "$pg_config")
	elif [ -n "$has_apt" ]; then
		# /usr/bin/pg_config may belong to the client library and know no server
		debian_major=$(newest_installed_major)
		candidate=/usr/lib/postgresql/$debian_major/bin/pg_config
		if [ -n "$debian_major" ] && [ -x "$candidate" ]; then
			pg_config=$candidate
		fi
	else
		# The PostgreSQL project's own RPMs stay out of PATH, and Fedora calls the server's pg_server_config.
		# The last that has a server is taken.
		for candidate in /usr/pgsql-*/bin/pg_config pg_config pg_server_config; do
			if candidate=$(command -v "$candidate") && [ -x "$("$candidate" --bindir)/postgres" ]; then
				pg_config=$candidate
			fi
		done
	fi
	if [ -n "$pg_config" ] && [ "$(major_of "$pg_config")" -lt "$oldest_major" ]; then
		die "$("$pg_config" --version) is too old, $oldest_major or later is needed; PG_CONFIG=... chooses another"
	fi
}

# Prints, one to a line, the needs below that are not met.
unmet_needs() {
	local need
	for need in "$@"; do
		case $need in
			make|gcc|perl|nm) command -v "$need" >/dev/null || echo "$need" ;;
			clang) find_clang >/dev/null || echo clang ;;
			libfuzzer) has_libfuzzer || echo libfuzzer ;;
			compiler) first_command gcc cc clang >/dev/null || echo gcc ;;
			libc) has_header stdio.h || echo libc ;;
			xxhash) has_header xxhash.h || echo xxhash ;;
			ipc-run) perl -MIPC::Run -e 1 2>/dev/null || echo ipc-run ;;
			test-more) perl -MTest::More -e 1 2>/dev/null || echo test-more ;;
			python) find_python pass >/dev/null || echo python ;;
			python-xxhash) find_python 'import xxhash' >/dev/null || echo python-xxhash ;;
			psycopg2) find_python 'import psycopg2' >/dev/null || echo psycopg2 ;;
			gnuplot) command -v gnuplot >/dev/null || echo gnuplot ;;
			contrib|hll) has_extension "$need" || echo "$need" ;;
			redis) first_command redis-server redis-check-rdb >/dev/null || echo redis ;;
			hiredis) has_header hiredis/hiredis.h || echo hiredis ;;
			guava) [ -f /usr/share/java/guava.jar ] || echo guava ;;
			jdk) command -v javac >/dev/null || echo jdk ;;
			runuser) $become_server_user true 2>/dev/null || echo runuser ;;
			server)
				{ [ -n "$pg_config" ] && [ -x "$("$pg_config" --bindir)/postgres" ] && [ -x "$("$pg_config" --bindir)/psql" ]; } ||
					[ -n "$debian_major" ] || echo server ;;
			headers)
				{ [ -n "$pg_config" ] && [ -f "$("$pg_config" --pgxs)" ] &&
					[ -f "$("$pg_config" --includedir-server)/postgres.h" ]; } || echo headers ;;
		esac
	done
}

# need | what was looked for | Debian | Fedora, RHEL | Arch | Alpine | openSUSE | Homebrew
# NN stands for the major version, CC for that of clang.
package_names='
make|the command make|make|make|make|make|make|xcode-select
gcc|the command gcc|gcc|gcc|gcc|gcc|gcc|xcode-select
libc|the header stdio.h|libc6-dev|glibc-devel|glibc|musl-dev|glibc-devel|xcode-select
clang|the command clang|clang|clang|clang|clang|clang|xcode-select
libfuzzer|libFuzzer and the sanitizers of clang|libclang-rt-CC-dev|compiler-rt|compiler-rt|compiler-rt|clang|llvm
nm|the command nm|binutils|binutils|binutils|binutils|binutils|xcode-select
perl|the command perl|perl|perl|perl|perl|perl|perl
runuser|the command setpriv or runuser|util-linux|util-linux|util-linux|runuser|util-linux|util-linux
xxhash|the header xxhash.h|libxxhash-dev|xxhash-devel|xxhash|xxhash-dev|xxhash-devel|xxhash
ipc-run|the Perl module IPC::Run|libipc-run-perl|perl-IPC-Run|perl-ipc-run|perl-ipc-run|perl-IPC-Run|cpanm:IPC::Run
test-more|the Perl module Test::More|perl|perl-Test-Simple|perl|perl|perl|perl
python|the command python3|python3|python3|python|python3|python3|python
python-xxhash|the Python module xxhash|python3-xxhash|python3-xxhash|python-xxhash|py3-xxhash|python3-xxhash|pip:xxhash
psycopg2|the Python module psycopg2|python3-psycopg2|python3-psycopg2|python-psycopg2|py3-psycopg2|python3-psycopg2|pip:psycopg2-binary
gnuplot|the command gnuplot|gnuplot-nox|gnuplot|gnuplot|gnuplot|gnuplot|gnuplot
contrib|postgres_fdw, pgbench|postgresql-NN|postgresql-contrib|postgresql|postgresqlNN-contrib|postgresql-contrib|postgresql@NN
hll|the extension hll|postgresql-NN-hll|hll_NN|postgresql-hll|postgresql-hll|postgresqlNN-hll|postgresql-hll
redis|the program redis-server|redis-tools|redis|redis|redis|redis|redis
hiredis|the header hiredis/hiredis.h|libhiredis-dev|hiredis-devel|hiredis|hiredis-dev|hiredis-devel|hiredis
guava|/usr/share/java/guava.jar|libguava-java|guava|guava|guava|guava|guava
jdk|the command javac|default-jdk-headless|java-devel|jdk-openjdk|openjdk17-jdk|java-devel|openjdk
server|the programs postgres and psql|postgresql-NN|postgresql-server|postgresql|postgresqlNN|postgresql-server|postgresql@NN
headers|postgres.h, pgxs.mk|postgresql-server-dev-NN|postgresql-server-devel|postgresql|postgresqlNN-dev|postgresql-server-devel|postgresql@NN
'

package_field() {   # COLUMN NEED...
	local column=$1 need
	shift
	for need in "$@"; do
		printf '%s' "$package_names" | awk -F'|' -v need="$need" -v column="$column" '$1 == need { print $column }'
	done
}

explain_missing() {   # NEED...
	local system column=2
	{
		printf '%s: this is missing:\n' "$command_name"
		package_field 2 "$@" | indented
		printf 'Usually it is in these packages:\n'
		for system in 'Debian, Ubuntu' 'Fedora, RHEL' Arch Alpine openSUSE 'macOS, Homebrew'; do
			column=$((column + 1))
			printf '    %-16s %s\n' "$system" "$(package_field "$column" "$@" | awk '!seen[$0]++' | paste -s -d ' ' -)"
		done
		printf 'NN is the major version of PostgreSQL, %s or later. ' "$oldest_major"
		printf 'PG_CONFIG=/path/to/pg_config chooses a server that lies elsewhere.\n'
	} >&2
	exit 1
}

# --- installing it (Debian, Ubuntu) -----------------------------------------------------------------------------

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

apt_update() {
	# A broken entry among the sources need not concern us: if it does, the installation fails and tells.
	as_root apt-get -qq -o DPkg::Lock::Timeout=300 update || echo "apt-get update: exit status $?"
}

# Installing a server package creates and starts a cluster unless told not to. One that was not asked for is not
# left behind: a drop-in says so as long as the installation runs. Root's own shell removes it, also on Ctrl-C.
apt_install() {
	# shellcheck disable=SC2016
	as_root sh -c '
		set -e
		dir=/etc/postgresql-common/createcluster.d
		drop_in=$dir/bloomfilter-demo.conf
		trap "rm -f $drop_in; rmdir --ignore-fail-on-non-empty -p $dir 2>/dev/null || :" EXIT
		trap "exit 130" HUP INT TERM
		mkdir -p "$dir"
		echo "create_main_cluster = false" >"$drop_in"
		DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none NEEDRESTART_SUSPEND=1 apt-get \
			-y -o DPkg::Lock::Timeout=300 --no-install-recommends install "$@"
	' sh "$@"
}

# Without a server that is new enough: the one of this release.
choose_debian_major() {
	if [ -z "$debian_major" ]; then
		debian_major=$(apt-cache depends postgresql | sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p')
		if [ "${debian_major:-0}" -lt "$oldest_major" ]; then
			die "PostgreSQL $oldest_major or later is needed, and this release has ${debian_major:-none}." \
				"https://wiki.postgresql.org/wiki/Apt has newer ones."
		fi
	fi
}

# the version of the clang that is there, or that would be installed
clang_major() {
	local compiler
	if compiler=$(find_clang); then
		"$compiler" --version | sed -n 's/.*clang version \([0-9]*\).*/\1/p'
	else
		apt-cache depends clang | sed -n 's/^ *Depends: clang-\([0-9]*\)$/\1/p'
	fi
}

install_missing() {   # NEED...
	local need package packages='' total
	if [ -n "${PG_CONFIG-}" ]; then         # which package has the rest of that server is not ours to guess
		for need in "$@"; do
			case $need in server|headers|contrib|hll) explain_missing "$@" ;; esac
		done
	fi
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || explain_missing "$@"
		# the password is asked for here, where the prompt can be seen and no output is redirected
		sudo -n true 2>/dev/null || sudo true || explain_missing "$@"
	fi
	step "reading the package lists" apt_update
	for need in "$@"; do
		package=$(package_field 3 "$need")
		case $package in
			*NN*) choose_debian_major; package=${package/NN/$debian_major} ;;
			*CC*) package=${package/CC/$(clang_major)} ;;
		esac
		packages="$packages $package"
	done
	printf '%sto be installed:%s%s\n' "$dim" "$packages" "$plain"
	# shellcheck disable=SC2086
	total=$(apt-get -s --no-install-recommends install $packages 2>/dev/null | grep -c '^Inst' || true)
	# shellcheck disable=SC2317 # called by tick
	progress_of_step() {
		printf ', %s of %s unpacked, %s set up' "$(grep -c '^Unpacking' "$step_log")" "$total" \
			"$(grep -c '^Setting up' "$step_log")"
	}
	# shellcheck disable=SC2086
	step "installing them, $total packages in all" apt_install $packages
	unset -f progress_of_step
}

# Sees to it that all of NEED... is there, then prints what will be used.
provide() {
	local missing
	has_apt=$(command -v apt-get || true)
	find_server
	missing=$(unmet_needs "$@")
	if [ -n "$missing" ]; then
		# shellcheck disable=SC2086
		if [ -z "$has_apt" ]; then
			explain_missing $missing
		else
			steps=$((steps + 2))
			install_missing $missing
		fi
		find_server
		missing=$(unmet_needs "$@")
		# shellcheck disable=SC2086
		[ -z "$missing" ] || explain_missing $missing
	fi
	choose_server_user                      # the package may just have brought the user postgres
	if [ -n "$pg_config" ]; then
		printf '%susing %s (%s)%s\n' "$dim" "$("$pg_config" --version)" "$pg_config" "$plain"
	fi
}

# --- building, and a server of our own --------------------------------------------------------------------------

make_command() {
	first_command gmake make
}

drop_objects() {
	find "$1" \( -name '*.o' -o -name '*.bc' -o -name '*.so' -o -name '*.dylib' -o -name '*.gc??' \) -exec rm -f {} +
}

copy_sources() {
	local entry
	for entry in "$root_dir"/*; do
		case ${entry##*/} in
			results|tmp_check|tmp_check_iso|output_iso|log) ;;
			*) cp -R "$entry" "$work/src/" ;;
		esac
	done
	drop_objects "$work/src"               # perhaps built against another server
	chmod -R a+rX "$work/src"
}

# with_llvm=no: bitcode for inlining by the JIT needs the very clang that built the server
build_and_install() {   # SOURCES MAKE-VARIABLE...
	local make
	make=("$(make_command)" -s -C "$1" with_llvm=no PG_CONFIG="$pg_config" "${@:2}")
	"${make[@]}" -j "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" all || return
	"${make[@]}" DESTDIR="$stage" install
}

# Links what is in the server's directory $1 into ours. Two directories are entered, so that of a bloomfilter that
# is installed there already nothing is seen, not even the bitcode.
link_tree() {
	local entry name
	mkdir -p "$stage$1"
	for entry in "$1"/*; do
		name=${entry##*/}
		case $name in
			bloomfilter*) ;;
			extension|bitcode) link_tree "$entry" ;;
			*) ln -sf "$entry" "$stage$1/$name" ;;
		esac
	done
}

stage_server() {   # SOURCES MAKE-VARIABLE...
	build_and_install "$@" || return
	mkdir -p "$server_bin"
	cp -RL "$("$pg_config" --bindir)/." "$server_bin"
	link_tree "$("$pg_config" --pkglibdir)"
	link_tree "$("$pg_config" --sharedir)"
	chmod -R a+rX "$stage"
}

choose_stage() {   # DIRECTORY: where the private copy of the server goes
	stage=$1
	server_bin=$stage$("$pg_config" --bindir)
}

build_extension() {
	copy_sources
	stage_server "$work/src"
}

# The extension built and a server staged in which CREATE EXTENSION finds it.
build_step() {
	choose_stage "$work/root"
	step "building the extension" build_extension
}

# --no-sync and fsync = off: nothing here has to survive a power cut. The socket admits its owner (and root) only,
# so that "trust" trusts nobody else on the machine. The caller may have more to set in "server_settings".
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
	if ! as_server "$server_bin/pg_ctl" -D "$data" -l "$work/run/server.log" -w -t 60 start; then
		cat "$work/run/server.log"
		return 1
	fi
	psql_here postgres -q -c 'CREATE DATABASE demo'
}

# The client runs as the user who asked, so that a file or a history of theirs is theirs.
psql_here() {   # DATABASE ARGUMENT...
	local database=$1
	shift
	"$server_bin/psql" -X -h "$short_tmp" -U postgres -d "$database" -v ON_ERROR_STOP=1 "$@"
}

server_step() {
	step "starting a throwaway server" start_server
}

run_demo() {   # ARGUMENT...: the demo, in demo/, since it reads its data from there
	cd "$work/src/demo" && psql_here demo -f demo.sql "$@" </dev/null
}
