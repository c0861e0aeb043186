# bloomfilter: a Bloom filter type for PostgreSQL
#
#   make, make install, make installcheck      with the pg_config in PATH,
#   make PG_CONFIG=/path/to/pg_config ...      or with another one
#
# scripts/check runs all tests against a throwaway server.

EXTENSION = bloomfilter
DATA = bloomfilter--1.0.sql
MODULE_big = bloomfilter
PGFILEDESC = "bloomfilter - Bloom filters as an SQL type"

CORE_OBJS = \
	src/core/bf_bits.o \
	src/core/bf_builder.o \
	src/core/bf_filter.o \
	src/core/bf_format.o \
	src/core/bf_hash.o \
	src/core/bf_list.o \
	src/core/bf_math.o \
	src/core/bf_set.o

OBJS = $(CORE_OBJS) \
	src/bloom_agg.o \
	src/bloom_array.o \
	src/bloom_canonical.o \
	src/bloom_expanded.o \
	src/bloom_func.o \
	src/bloom_host.o \
	src/bloom_info.o \
	src/bloom_io.o \
	src/bloom_key.o \
	src/bloom_kind.o \
	src/bloom_plan.o \
	src/bloom_set.o \
	src/bloom_stored.o \
	src/bloom_types.o

# A comma that functions of make do not see.
, := ,

# A name that postgres exports, too, must not be bound to postgres.
SHLIB_LINK += -Wl,-Bsymbolic -lm

# For test/tap/010_out_of_memory.pl, allocations that can be made to fail; for
# 015_indirect.pl, indirect TOAST pointers.
ifdef FAIL_ALLOC
OBJS += test/fault/fail_alloc.o test/fault/indirect.o
SHLIB_LINK += $(addprefix -Wl$(,)--wrap=, palloc palloc0 MemoryContextAlloc \
	MemoryContextAllocZero MemoryContextAllocExtended)
endif

# "make installcheck REGRESS_LARGE=1" adds the tests that take minutes, of millions of keys.
LARGE_TESTS = group overfull volume
REGRESS = $(filter-out $(if $(REGRESS_LARGE),,$(LARGE_TESTS)),$(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql))))
REGRESS_OPTS = --inputdir=. --load-extension=bloomfilter

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard src/*.h src/core/*.h)

# The names of the regression tests, for scripts/check.
list-regress:
	@echo $(REGRESS)

.PHONY: list-regress
