# bloomfilter: Bloom filters for PostgreSQL
#
#   make, make install                      with the pg_config in PATH,
#   make PG_CONFIG=/path/to/pg_config ...   or with another one
#
# Tests, when it is installed:
#   make installcheck                       by a running server
#   make prove_installcheck                 by servers that the tests start
# and without PostgreSQL:
#   make unit                               the core's programs
#   make fuzz                               the fuzz targets on their corpus
#
# scripts/check runs them all, and needs no running server.

EXTENSION = bloomfilter
DATA = $(wildcard bloomfilter--*.sql)
MODULE_big = bloomfilter
PGFILEDESC = "bloomfilter - Bloom filters as an SQL type"

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/core/*.c src/key/*.c src/filter/*.c \
	src/sql/*.c src/join/*.c src/join/*/*.c src/index/*.c src/prune/*.c src/*.c)))

EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" \
	$(dir $(lastword $(MAKEFILE_LIST)))bloomfilter.control)
PG_CPPFLAGS = -I$(srcdir)/src -DPGBLOOM_VERSION='"$(EXTVERSION)"'

# A comma that functions of make do not see.
, := ,

# A name that postgres exports, too, must not be bound to postgres.  The linkers
# of these systems bind symbols like that anyway and do not know the option.
# PORTNAME comes from PGXS, so it is known only when the library is linked.
SHLIB_LINK += $(if $(filter darwin win32 cygwin,$(PORTNAME)),,-Wl$(,)-Bsymbolic) -lm

# For tests in test/tap: allocations that can be made to fail, indirect TOAST
# pointers, an FmgrInfo that is used again after an error, and an aggregate that
# calls the functions of another one; in a library of its own, a callback that
# executes a statement before the commit.
ifdef FAIL_ALLOC
OBJS += $(addprefix test/fault/,callers.o fail_alloc.o)
SHLIB_LINK += $(addprefix -Wl$(,)--wrap=, palloc palloc0 MemoryContextAlloc \
	MemoryContextAllocZero MemoryContextAllocExtended MemoryContextAllocHuge \
	ProcessInterrupts pgbloom_env)
endif

# "make installcheck REGRESS_LARGE=1" also runs the tests of millions of keys,
# which take minutes.
LARGE_TESTS = large
REGRESS = $(filter-out $(if $(REGRESS_LARGE),,$(LARGE_TESTS)), \
	$(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql))))
# Databases of the tests have an encoding and a locale of their own, whatever
# those of the server are.
DATABASE_OPTS = --load-extension=bloomfilter --encoding=UTF8 --no-locale
REGRESS_OPTS = $(DATABASE_OPTS)

ISOLATION = $(patsubst test/isolation/specs/%.spec,%, \
	$(sort $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation $(DATABASE_OPTS)

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(wildcard $(PGXS)),)
$(error $(PG_CONFIG) names no PostgreSQL for which extensions can be built. \
	Install the package postgresql-server-dev-NN (Debian, Ubuntu) or \
	postgresqlNN-devel (Red Hat), or set PG_CONFIG=/path/to/pg_config)
endif
include $(PGXS)

ifeq ($(filter %clean %check list-regress,$(MAKECMDGOALS)),)
hash := \#
ifneq ($(shell echo '$(hash)include <xxhash.h>' | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 && echo found),found)
$(error xxhash.h is missing. Install the package libxxhash-dev (Debian, \
	Ubuntu), xxhash-devel (Red Hat) or xxhash (macOS))
endif
endif

$(OBJS): $(wildcard src/*.h src/*/*.h src/*/*/*.h)

# By this link, an ordinary user can set local_preload_libraries = bloomfilter.
plugin = $(DESTDIR)$(pkglibdir)/plugins/bloomfilter$(DLSUFFIX)

install: install-plugin
uninstall: uninstall-plugin

install-plugin:
	$(MKDIR_P) '$(dir $(plugin))'
	ln -sf ../bloomfilter$(DLSUFFIX) '$(plugin)'

uninstall-plugin:
	rm -f '$(plugin)'

# PROVE_TESTS=test/tap/NAME.pl runs one of them.
PROVE_TESTS := $(or $(PROVE_TESTS),test/tap/*.pl)
prove_installcheck:
	$(prove_installcheck)

# Programs of the core alone.
CORE_OUT = tmp_core
CORE_FLAGS = -O2
EXTRA_CLEAN = $(CORE_OUT)
core_cc = $(CC) -std=c11 -Wall -Wextra -Wpedantic -Werror $(CORE_FLAGS) -Isrc/core
core_objs = $(patsubst src/core/%.c,$(CORE_OUT)/core/%.o,$(wildcard src/core/*.c))
unit_programs = $(patsubst test/unit/%.c,$(CORE_OUT)/%,$(sort $(wildcard test/unit/test_*.c)))
fuzz_programs = $(patsubst test/fuzz/%.c,$(CORE_OUT)/%,$(sort $(wildcard test/fuzz/fuzz_*.c)))
# What gives input to a fuzz target: files, or -fsanitize=fuzzer.
FUZZ_MAIN = test/fuzz/replay.c
PYTHON ?= python3

$(CORE_OUT)/core/%.o: src/core/%.c $(wildcard src/core/*.h)
	@$(MKDIR_P) $(@D)
	$(core_cc) -c -o $@ $<

$(CORE_OUT)/test_%: test/unit/test_%.c $(wildcard test/*.h test/unit/*.h) $(core_objs)
	$(core_cc) -o $@ $< $(core_objs) -lm

$(CORE_OUT)/fuzz_%: test/fuzz/fuzz_%.c $(wildcard test/*.h test/fuzz/*.h) $(core_objs)
	$(core_cc) -o $@ $< $(FUZZ_MAIN) $(core_objs) -lm

unit: $(unit_programs)
	cd test/unit && prove $(PROVE_FLAGS) --failures --comments --exec '' $(abspath $^)

fuzz-programs: $(fuzz_programs)
	$(PYTHON) test/fuzz/make_corpus.py $(CORE_OUT)/corpus

fuzz: fuzz-programs
	set -e; for target in $(fuzz_programs:$(CORE_OUT)/fuzz_%=%); do \
		echo "fuzz_$$target"; \
		edit=; [ $$target != image ] || edit=--edit; \
		$(CORE_OUT)/fuzz_$$target $$edit $(CORE_OUT)/corpus/$$target/*; done

# The names of the regression tests.
list-regress:
	@echo $(REGRESS)

.PHONY: install-plugin uninstall-plugin list-regress prove_installcheck unit \
	fuzz fuzz-programs
