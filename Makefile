# bloomfilter: a Bloom filter type for PostgreSQL
#
#   make, make install, make installcheck      with the pg_config in PATH,
#   make PG_CONFIG=/path/to/pg_config ...      or with another one
#
# scripts/check runs all tests against a throwaway server.

EXTENSION = bloomfilter
DATA = $(wildcard bloomfilter--*.sql)
MODULE_big = bloomfilter
PGFILEDESC = "bloomfilter - Bloom filters as an SQL type"

OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/core/*.c src/pg/*.c \
	src/sql/*.c src/join/*.c src/index/*.c src/*.c)))

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
# calls the functions of another one.
ifdef FAIL_ALLOC
OBJS += $(addprefix test/fault/,fn_extra.o fail_alloc.o indirect.o \
	wrapped_agg.o)
SHLIB_LINK += $(addprefix -Wl$(,)--wrap=, palloc palloc0 MemoryContextAlloc \
	MemoryContextAllocZero MemoryContextAllocExtended)
endif

# "make installcheck REGRESS_LARGE=1" also runs the tests of millions of keys,
# which take minutes.
LARGE_TESTS = group overfull volume
REGRESS = $(filter-out $(if $(REGRESS_LARGE),,$(LARGE_TESTS)), \
	$(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql))))
REGRESS_OPTS = --inputdir=. --load-extension=bloomfilter

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard src/*/*.h)

# The names of the regression tests, for scripts/check.
list-regress:
	@echo $(REGRESS)

.PHONY: list-regress
