# shellcheck shell=bash disable=SC2154 # variables go both ways between this file and scripts/check
# PostgreSQL's source, and the tests that need it: its own regression suite, of which no package has regress.c.
# Sourced by scripts/check, after lib.sh.

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

# The regression suite, and the C functions that its tests call, in the current directory. Where the source of a new
# major is not there yet, it is the suite of the major before: results are compared with those of the same server. Of
# 18's suite three tests do not suit 19: join_hash is planned with nested loops that start parallel workers for each of
# 10,000 rows, and views that sequence and stats_import show have an LSN or OIDs, too.
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
	local major
	cd "$dir" || return
	major=$(major_of "$pg_config")
	if [ "$(uname -m)" = s390x ]; then
		skip "the suite takes hours on an emulated machine"
		return
	fi
	if ! command -v apt-get >/dev/null || ! fetch_suite "$major" >"$log" 2>&1; then
		skip "the source of PostgreSQL $major cannot be downloaded, nor that of the major before"
		return
	fi
	check_tap suite as_server env PYTHONPYCACHEPREFIX="$work/run/cache" "$(find_python pass)" \
		"$work/src/test/join/check_suite.py" --programs="$server_bin" --suite="$dir/source/src/test/regress" \
		--libraries="$dir/libraries" --pg-regress="$pgxs_test/regress/pg_regress" --work="$work/run/suite"
}
