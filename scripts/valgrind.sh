# shellcheck shell=bash disable=SC2034,SC2154 # variables go both ways between this file and scripts/check
# What scripts/check --valgrind needs: a server that is built for valgrind, and the groups that only this server has.
# Sourced by scripts/check, after lib.sh and source.sh.
#
# PostgreSQL tells valgrind about palloc and pfree only if compiled with USE_VALGRIND; otherwise valgrind does not see
# an overrun within a block of palloc. No package is built like that. The source is PostgreSQL's original archive,
# because Debian's patches make it install into the directories of the system. It is built once and kept; remove the
# directory to build it again.

build_for_valgrind() {   # MAJOR DIRECTORY
	local dir=$work/postgresql part
	mkdir -p "$dir/build" "${2%/*}"
	cd "$dir" || return
	download_source "$1"
	tar -x -C build --strip-components=1 -f postgresql-"$1"_*.orig.tar.*
	cd build || return
	./configure --prefix="$2" --enable-cassert --enable-debug --enable-tap-tests --without-readline \
		--without-icu --without-zlib CPPFLAGS=-DUSE_VALGRIND CFLAGS='-Og -g -fno-omit-frame-pointer'
	make -s -j "$(nproc)"
	for part in . contrib/citext contrib/amcheck; do
		make -s -C "$part" DESTDIR="$dir/root" install
	done
	cp src/tools/valgrind.supp "$dir/root$2"
	rm -rf "$2" "$2.new"
	mv "$dir/root$2" "$2.new"              # may copy, and be interrupted
	mv "$2.new" "$2"
	rm -rf "$dir"
}

# Sets PG_CONFIG to that of the server for valgrind. Root's own cache is closed to the user that runs the server.
prepare_valgrind() {
	local major prefix cache=/var/cache
	command -v apt-get >/dev/null || die "--valgrind needs apt, of Debian or Ubuntu, for the source of PostgreSQL"
	[ -z "${PG_CONFIG-}" ] || die "--valgrind builds a server of its own, and PG_CONFIG names another"
	install_deps command:valgrind=valgrind command:dpkg-source=dpkg-dev command:bzip2=bzip2 command:gcc=gcc \
		header:stdio.h=libc6-dev command:make=make
	major=$(server_major)
	[ "$(id -u)" -eq 0 ] || cache=${XDG_CACHE_HOME:-$HOME/.cache}
	prefix=$cache/bloomfilter/postgresql-$major-valgrind
	[ -x "$prefix/bin/postgres" ] ||
		step "building PostgreSQL $major for valgrind" build_for_valgrind "$major" "$prefix"
	PG_CONFIG=$prefix/bin/pg_config
}

# A program in the place of postgres that runs it under valgrind, except for what initdb does with it. With
# VALGRIND_OPTS=--track-origins=yes, a report tells where uninitialized bytes come from, at nearly twice the time.
wrap_postgres() {   # DIRECTORY-OF-LOGS
	mv "$server_bin/postgres" "$server_bin/postgres.real"
	cat >"$server_bin/postgres" <<-END
		#!/bin/sh
		case \$1 in
			--boot|--single|--check|-V|--version) exec "$server_bin/postgres.real" "\$@" ;;
		esac
		exec valgrind --quiet --leak-check=no --trace-children=yes --read-var-info=no \\
			--suppressions="${PG_CONFIG%/bin/*}/valgrind.supp" --gen-suppressions=all --error-markers=REPORT,END \\
			--log-file="$1/%p" "$server_bin/postgres.real" "\$@"
	END
	chmod 755 "$server_bin/postgres"
}

no_reports() {   # DIRECTORY-OF-LOGS
	[ -n "$(ls "$1")" ] || { echo "valgrind wrote nothing"; return 1; }
	! grep -h -A 25 REPORT "$1"/*
}

# Without the tests of millions of keys and groups, which do the same more often.
group_valgrind() {
	local logs=$work/run/valgrind-logs
	choose_stage "$work/valgrind"
	stage_server "$work/src" >"$log" 2>&1
	as_server mkdir "$logs"
	wrap_postgres "$logs"
	# shellcheck disable=SC2046
	check_pg_regress '' regress/pg_regress "$work/src" $(list_regress | tr ' ' '\n' | grep -vxE 'group|volume')
	check "no report by valgrind" no_reports "$logs"
}

# Everything is looked up again in each statement, so thousands of statements take an hour: these tests have few.
group_discard() {
	check_pg_regress 'debug_discard_caches = 1' regress/pg_regress "$work/src" array equality hash info intersection \
		params sizing
}
