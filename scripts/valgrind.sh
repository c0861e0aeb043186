# shellcheck shell=bash disable=SC2034,SC2154 # variables go both ways between this file and scripts/check
# What scripts/check --valgrind needs: a server that was built for it, and the groups that only such a server has.
# Sourced by scripts/check, after lib.sh.
#
# PostgreSQL tells valgrind about palloc and pfree only if compiled with USE_VALGRIND; without, an overrun within a
# block of palloc's goes unseen. No package is built like that, so the source that Debian packages is: as PostgreSQL
# released it, since with Debian's patches it would install into the directories of the system. It is built once and
# kept; remove the directory to have it built anew.

valgrind_cache() {
	if [ "$(id -u)" -eq 0 ]; then           # root's own cache is closed to the user that runs the server
		printf '/var/cache/bloomfilter\n'
	else
		printf '%s/bloomfilter\n' "${XDG_CACHE_HOME:-$HOME/.cache}"
	fi
}

# The original archive of the source of postgresql-MAJOR, in the current directory. Lists of sources are private:
# those of the system mostly have none. Any minor release will do, and an archive may announce one that it cannot
# deliver: then an earlier one is taken.
download_source() {   # MAJOR
	local version versions options=(-o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User=root)
	mkdir -p lists/partial cache/archives/partial
	# shellcheck disable=SC2016
	apt-get indextargets --format 'deb-src $(SITE) $(RELEASE) $(COMPONENT)' "Identifier: Packages" |
		sort -u >sources.list
	apt-get "${options[@]}" -qq update
	versions=$(apt-cache "${options[@]}" showsrc --only-source "postgresql-$1" | sed -n 's/^Version: //p' | sort -rVu)
	for version in $versions; do
		rm -f postgresql-*
		if apt-get "${options[@]}" -qq --download-only --only-source source "postgresql-$1=$version"; then
			return
		fi
	done
	die "the source of PostgreSQL $1 could not be had"
}

build_for_valgrind() {   # MAJOR DIRECTORY
	local major=$1 prefix=$2 dir=$work/postgresql part
	mkdir -p "$dir/build" "$(dirname "$prefix")"
	cd "$dir" || return
	download_source "$major"
	tar -x -C build --strip-components=1 -f "$dir"/postgresql-"$major"_*.orig.tar.*
	cd build || return
	./configure --prefix="$prefix" --enable-cassert --enable-debug --enable-tap-tests --without-readline \
		--without-icu --without-zlib CPPFLAGS=-DUSE_VALGRIND CFLAGS='-Og -g -fno-omit-frame-pointer'
	make -s -j "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)"
	for part in . contrib/citext contrib/amcheck; do
		make -s -C "$part" DESTDIR="$dir/root" install
	done
	cp src/tools/valgrind.supp "$dir/root$prefix"
	rm -rf "$prefix" "$prefix.new"
	mv "$dir/root$prefix" "$prefix.new"    # this may copy, and stop before its end
	mv "$prefix.new" "$prefix"
	rm -rf "$dir"
}

# Sets PG_CONFIG to the server's.
provide_valgrind() {
	local major prefix missing=''
	has_apt=$(command -v apt-get || true)
	[ -n "$has_apt" ] || die "--valgrind needs apt, of Debian or Ubuntu, for the source of PostgreSQL"
	[ -z "${PG_CONFIG-}" ] || die "--valgrind builds a server of its own, and PG_CONFIG names another"
	find_server
	choose_debian_major
	major=$debian_major
	prefix=$(valgrind_cache)/postgresql-$major-valgrind
	command -v valgrind >/dev/null || missing="$missing valgrind"
	if [ ! -x "$prefix/bin/postgres" ]; then
		command -v dpkg-source >/dev/null || missing="$missing dpkg-dev"
		command -v bzip2 >/dev/null || missing="$missing bzip2"
		has_header stdio.h 2>/dev/null || missing="$missing gcc libc6-dev"
		command -v make >/dev/null || missing="$missing make"
	fi
	if [ -n "$missing" ]; then
		steps=$((steps + 2))
		step "reading the package lists" apt_update
		# shellcheck disable=SC2086
		step "installing$missing" apt_install $missing
	fi
	if [ ! -x "$prefix/bin/postgres" ]; then
		steps=$((steps + 1))
		step "building PostgreSQL $major for valgrind" build_for_valgrind "$major" "$prefix"
	fi
	PG_CONFIG=$prefix/bin/pg_config
	valgrind_suppressions=$prefix/valgrind.supp
}

# A program in the place of postgres that runs it under valgrind, except for what initdb does with it. Where the
# uninitialized bytes of a report come from, VALGRIND_OPTS=--track-origins=yes tells, at nearly twice the time.
wrap_postgres() {   # DIRECTORY-OF-LOGS
	mv "$server_bin/postgres" "$server_bin/postgres.real"
	cat >"$server_bin/postgres" <<-END
		#!/bin/sh
		case \$1 in
			--boot|--single|--check|-V|--version) exec "$server_bin/postgres.real" "\$@" ;;
		esac
		exec valgrind --quiet --leak-check=no --trace-children=yes --read-var-info=no \\
			--suppressions="$valgrind_suppressions" --gen-suppressions=all --error-markers=REPORT,END \\
			--log-file="$1/%p" "$server_bin/postgres.real" "\$@"
	END
	chmod 755 "$server_bin/postgres"
}

no_reports() {   # DIRECTORY-OF-LOGS
	[ -n "$(ls "$1")" ] || { echo "valgrind wrote nothing"; return 1; }
	! grep -h -A 25 REPORT "$1"/*
}

# Without the tests of millions of keys and groups, which do what the others do, only more often.
group_valgrind() {
	local logs=$work/run/valgrind-logs
	choose_stage "$work/valgrind"
	stage_server "$work/src" >"$out/valgrind-build.log" 2>&1
	as_server mkdir "$logs"
	wrap_postgres "$logs"
	# shellcheck disable=SC2046
	run_pg_regress regress/pg_regress "$work/src" $(list_regress | tr ' ' '\n' | grep -vxE 'group|volume')
	verdict "no report by valgrind" "$out/valgrind.reports" no_reports "$logs"
}

# Where everything is looked up anew in each statement, thousands of them take an hour: these have few.
group_discard() {
	settings=('debug_discard_caches = 1')
	run_pg_regress regress/pg_regress "$work/src" array equality hash info intersection params sizing
}
