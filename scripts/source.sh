# shellcheck shell=bash disable=SC2154 # variables go both ways between this file and scripts/check
# What needs PostgreSQL's source: a server that is built for valgrind, and PostgreSQL's own regression suite, of which
# no package has regress.c. Sourced by scripts/check, after lib.sh.

# The original archive of postgresql-MAJOR, in the current directory, by package lists of our own: those of the system
# mostly have no sources. The lists may name a version that the mirror no longer has; then an earlier one is taken.
download_source() {   # MAJOR
	local version options=(-o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root)
	mkdir -p lists/partial cache/archives/partial
	# shellcheck disable=SC2016
	apt-get indextargets --format 'deb-src $(SITE) $(RELEASE) $(COMPONENT)' "Identifier: Packages" |
		sort -u >sources.list
	apt-get "${options[@]}" -qq update
	for version in $(apt-cache "${options[@]}" showsrc --only-source "postgresql-$1" |
		sed -n 's/^Version: //p' | sort -rVu); do
		rm -f postgresql-*
		! apt-get "${options[@]}" -qq --download-only --only-source source "postgresql-$1=$version" || return 0
	done
	die "the source of PostgreSQL $1 cannot be downloaded"
}

# --- the regression suite ---------------------------------------------------------------------------------------

# The suite and the C functions that its tests call, in the current directory. Where the source of a new major is not
# there yet, it is the suite of the major before: results are compared with those of the same server. Of 18's suite
# three tests do not suit 19: join_hash is planned with nested loops that start parallel workers for each of 10,000
# rows, and views that sequence and stats_import show have an LSN or OIDs, too.
fetch_suite() {   # MAJOR
	local archives
	mkdir -p download source libraries
	(cd download && { (download_source "$1") || download_source "$(($1 - 1))"; }) || return
	archives=(download/postgresql-*.orig.tar.*)
	tar -x -C source --strip-components=1 --wildcards -f "${archives[0]}" '*/src/test/regress' || return
	[[ ${archives[0]} == */postgresql-$1_* ]] ||
		sed -i -E 's/ (join_hash|sequence|stats_import)\b//g' source/src/test/regress/parallel_schedule
	gcc -O2 -shared -fPIC -w -I"$("$pg_config" --includedir-server)" -Isource/src/test/regress -o libraries/regress.so \
		source/src/test/regress/regress.c || return
	ln -s "$("$pg_config" --pkglibdir)"/{refint,autoinc}.so libraries
}

group_pgregress() {
	if [ "$(uname -m)" = s390x ]; then
		echo 'skipped: the suite takes hours on an emulated machine'
	elif ! command -v apt-get >/dev/null || ! fetch_suite "$(major_of "$pg_config")"; then
		echo 'skipped: the source of PostgreSQL cannot be downloaded'
	else
		as_server env PYTHONPYCACHEPREFIX="$work/run/cache" prove --exec "$(find_python pass)" \
			"$work/src/test/join/check_suite.py" :: --programs="$server_bin" --work="$work/run/suite" \
			--suite="$dir/source/src/test/regress" --libraries="$dir/libraries" \
			--pg-regress="$pgxs_test/regress/pg_regress"
	fi
}

# --- valgrind ---------------------------------------------------------------------------------------------------

# PostgreSQL tells valgrind about palloc and pfree only if compiled with USE_VALGRIND; no package is. It is the original
# archive because Debian's patches make it install into the directories of the system.
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

# Sets PG_CONFIG to that of the server for valgrind, which is built once and kept; remove the directory to build it
# again. Root's own cache is closed to the user that runs the server.
prepare_valgrind() {
	local major prefix cache=/var/cache
	command -v apt-get >/dev/null || die "--valgrind needs apt, of Debian or Ubuntu, for the source of PostgreSQL"
	[ -z "${PG_CONFIG-}" ] || die "--valgrind builds a server of its own, and PG_CONFIG names another"
	find_server
	try_install valgrind dpkg-dev bzip2 make gcc libc6-dev
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

# Without the tests of millions of keys, which do the same more often.
group_valgrind() {
	local logs=$work/run/valgrind-logs
	choose_stage "$work/valgrind"
	stage_server "$work/src"
	as_server mkdir "$logs"
	wrap_postgres "$logs"
	installcheck '' ISOLATION= || echo "failed: sql/ under valgrind"
	check "no report by valgrind" no_reports "$logs"
}

# Everything is looked up again in each statement, so thousands of statements take an hour: these tests have few.
group_discard() {
	installcheck 'debug_discard_caches = 1' ISOLATION= REGRESS='array equality hash info intersection params sizing'
}
