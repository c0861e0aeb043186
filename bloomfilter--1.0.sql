/* bloomfilter--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION bloomfilter" to load this file. \quit

--
-- The type
--

CREATE TYPE bloom;

CREATE FUNCTION bloom_in(cstring) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5000;
COMMENT ON FUNCTION bloom_in(cstring) IS 'I/O';

CREATE FUNCTION bloom_out(bloom) RETURNS cstring
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 3000;
COMMENT ON FUNCTION bloom_out(bloom) IS 'I/O';

CREATE FUNCTION bloom_recv(internal) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_recv(internal) IS 'I/O';

CREATE FUNCTION bloom_send(bloom) RETURNS bytea
	AS 'byteasend' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 50;
COMMENT ON FUNCTION bloom_send(bloom) IS 'I/O';

-- Storage is external because filters do not compress and are read in slices.
CREATE TYPE bloom (
	INPUT = bloom_in,
	OUTPUT = bloom_out,
	RECEIVE = bloom_recv,
	SEND = bloom_send,
	INTERNALLENGTH = VARIABLE,
	ALIGNMENT = double,
	STORAGE = external
);
COMMENT ON TYPE bloom IS 'Bloom filter: set of keys with false positives, but no false negatives';

CREATE FUNCTION bloom_from_bytea(bytea) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_from_bytea(bytea) IS 'convert the image of a filter (doc/FORMAT.md) and validate it';

CREATE FUNCTION bloom_to_bytea(bloom) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_to_bytea(bloom) IS 'image of a filter (doc/FORMAT.md)';

CREATE CAST (bytea AS bloom) WITH FUNCTION bloom_from_bytea(bytea);
COMMENT ON CAST (bytea AS bloom) IS 'convert the image of a filter and validate it';

CREATE CAST (bloom AS bytea) WITH FUNCTION bloom_to_bytea(bloom);
COMMENT ON CAST (bloom AS bytea) IS 'image of a filter';

--
-- Types of untyped keys
--
-- Functions that take a key have two variants: one for anyelement, which takes
-- any value that has a type, and one for bloom_key, which untyped literals and
-- parameters become.  A variant for text in place of bloom_key would also
-- attract values of types with an implicit cast to text, such as citext, and
-- the cast would lose the equality of the type.  Functions that take an array
-- of keys have two variants in the same way, for anyarray and bloom_keys.
--
-- Both types are collatable, because the parser drops the COLLATE clause of a
-- literal whose type is not, and a nondeterministic collation must be rejected.
--
-- The library recognizes its types by their input functions.
--

CREATE TYPE bloom_key;

CREATE FUNCTION bloom_key_in(cstring) RETURNS bloom_key
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_key_in(cstring) IS 'I/O';

CREATE FUNCTION bloom_key_out(bloom_key) RETURNS cstring
	AS 'textout' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_key_out(bloom_key) IS 'I/O';

CREATE FUNCTION bloom_key_recv(internal) RETURNS bloom_key
	AS 'textrecv' LANGUAGE internal STABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_key_recv(internal) IS 'I/O';

CREATE FUNCTION bloom_key_send(bloom_key) RETURNS bytea
	AS 'textsend' LANGUAGE internal STABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_key_send(bloom_key) IS 'I/O';

CREATE TYPE bloom_key (
	INPUT = bloom_key_in,
	OUTPUT = bloom_key_out,
	RECEIVE = bloom_key_recv,
	SEND = bloom_key_send,
	INTERNALLENGTH = VARIABLE,
	STORAGE = extended,
	CATEGORY = 'S',
	COLLATABLE = true
);
COMMENT ON TYPE bloom_key IS 'key given as an untyped literal or parameter, read as the key type of the filter';

CREATE TYPE bloom_keys;

CREATE FUNCTION bloom_keys_in(cstring) RETURNS bloom_keys
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_keys_in(cstring) IS 'I/O';

CREATE FUNCTION bloom_keys_out(bloom_keys) RETURNS cstring
	AS 'textout' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_keys_out(bloom_keys) IS 'I/O';

CREATE FUNCTION bloom_keys_recv(internal) RETURNS bloom_keys
	AS 'textrecv' LANGUAGE internal STABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_keys_recv(internal) IS 'I/O';

CREATE FUNCTION bloom_keys_send(bloom_keys) RETURNS bytea
	AS 'textsend' LANGUAGE internal STABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_keys_send(bloom_keys) IS 'I/O';

CREATE TYPE bloom_keys (
	INPUT = bloom_keys_in,
	OUTPUT = bloom_keys_out,
	RECEIVE = bloom_keys_recv,
	SEND = bloom_keys_send,
	INTERNALLENGTH = VARIABLE,
	STORAGE = extended,
	CATEGORY = 'S',
	COLLATABLE = true
);
COMMENT ON TYPE bloom_keys IS
	'array of keys given as an untyped literal or parameter, read as the key type of the filter';

--
-- Empty filters, adding keys
--

CREATE FUNCTION bloom_empty(
	fpp float8 DEFAULT 0.01,
	expected float8 DEFAULT NULL,
	seed bigint DEFAULT 0,
	key_type regtype DEFAULT NULL)
	RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bloom_empty(float8, float8, bigint, regtype) IS
	'empty filter; fpp from 1e-9 to 0.5, expected is a number of distinct keys';

CREATE FUNCTION bloom_empty_like(filter bloom) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bloom_empty_like(bloom) IS 'empty filter with the parameters and the key type of another one';

CREATE FUNCTION bloom_add_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_add_support(internal) IS
	'planner support for in-place modification of PL/pgSQL variables (PostgreSQL 18 and later)';

CREATE FUNCTION bloom_add(filter bloom, key anyelement) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100 SUPPORT bloom_add_support;
COMMENT ON FUNCTION bloom_add(bloom, anyelement) IS 'add a key; NULL is ignored';

CREATE FUNCTION bloom_add(filter bloom, key bloom_key) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100 SUPPORT bloom_add_support;
COMMENT ON FUNCTION bloom_add(bloom, bloom_key) IS 'add a key; NULL is ignored';

CREATE FUNCTION bloom_try_add(
	filter bloom,
	key anyelement,
	OUT filter bloom,
	OUT added boolean)
	AS 'MODULE_PATHNAME', 'bloom_try_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bloom_try_add(bloom, anyelement) IS
	'add a key and return whether it was certainly new; NULL is ignored';

CREATE FUNCTION bloom_try_add(
	filter bloom,
	key bloom_key,
	OUT filter bloom,
	OUT added boolean)
	AS 'MODULE_PATHNAME', 'bloom_try_add' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bloom_try_add(bloom, bloom_key) IS
	'add a key and return whether it was certainly new; NULL is ignored';

CREATE FUNCTION bloom_add_all(filter bloom, keys anyarray) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_add_all' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 500 SUPPORT bloom_add_support;
COMMENT ON FUNCTION bloom_add_all(bloom, anyarray) IS 'add all elements of an array; NULL is ignored';

CREATE FUNCTION bloom_add_all(filter bloom, keys bloom_keys) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_add_all' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 500 SUPPORT bloom_add_support;
COMMENT ON FUNCTION bloom_add_all(bloom, bloom_keys) IS 'add all elements of an array; NULL is ignored';

--
-- Planner support
--
-- The estimators read statistics, so they are stable.
--

CREATE FUNCTION bloom_contsel(internal, oid, internal, integer) RETURNS float8
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_contsel(internal, oid, internal, integer) IS 'restriction selectivity of @> and <@';

CREATE FUNCTION bloom_contjoinsel(internal, oid, internal, smallint, internal) RETURNS float8
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_contjoinsel(internal, oid, internal, smallint, internal) IS 'join selectivity of @> and <@';

CREATE FUNCTION bloom_contains_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_contains_support(internal) IS
	'planner support for bloom_contains, bloom_contained_by and bloom_contains_hash';

--
-- Lookups
--

CREATE FUNCTION bloom_contains(filter bloom, key anyelement) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
	SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_contains(bloom, anyelement) IS
	'whether the filter contains the key; false is certain, true is probable';

CREATE FUNCTION bloom_contained_by(key anyelement, filter bloom) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_contained_by' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
	SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_contained_by(anyelement, bloom) IS 'implementation of <@ operator';

CREATE OPERATOR @> (
	FUNCTION = bloom_contains,
	LEFTARG = bloom,
	RIGHTARG = anyelement,
	COMMUTATOR = <@,
	RESTRICT = bloom_contsel,
	JOIN = bloom_contjoinsel
);
COMMENT ON OPERATOR @> (bloom, anyelement) IS 'filter probably contains key';

CREATE OPERATOR <@ (
	FUNCTION = bloom_contained_by,
	LEFTARG = anyelement,
	RIGHTARG = bloom,
	COMMUTATOR = @>,
	RESTRICT = bloom_contsel,
	JOIN = bloom_contjoinsel
);
COMMENT ON OPERATOR <@ (anyelement, bloom) IS 'key is probably contained in filter';

CREATE FUNCTION bloom_contains(filter bloom, key bloom_key) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
	SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_contains(bloom, bloom_key) IS
	'whether the filter contains the key; false is certain, true is probable';

CREATE FUNCTION bloom_contained_by(key bloom_key, filter bloom) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_contained_by' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
	SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_contained_by(bloom_key, bloom) IS 'implementation of <@ operator';

CREATE OPERATOR @> (
	FUNCTION = bloom_contains,
	LEFTARG = bloom,
	RIGHTARG = bloom_key,
	COMMUTATOR = <@,
	RESTRICT = bloom_contsel,
	JOIN = bloom_contjoinsel
);
COMMENT ON OPERATOR @> (bloom, bloom_key) IS 'filter probably contains key';

CREATE OPERATOR <@ (
	FUNCTION = bloom_contained_by,
	LEFTARG = bloom_key,
	RIGHTARG = bloom,
	COMMUTATOR = @>,
	RESTRICT = bloom_contsel,
	JOIN = bloom_contjoinsel
);
COMMENT ON OPERATOR <@ (bloom_key, bloom) IS 'key is probably contained in filter';

CREATE FUNCTION bloom_contains_any(filter bloom, keys anyarray) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_contains_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_contains_any(bloom, anyarray) IS
	'whether the filter contains any element; NULL elements are skipped';

CREATE FUNCTION bloom_contains_any(filter bloom, keys bloom_keys) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_contains_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_contains_any(bloom, bloom_keys) IS
	'whether the filter contains any element; NULL elements are skipped';

CREATE FUNCTION bloom_contains_all(filter bloom, keys anyarray) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_contains_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_contains_all(bloom, anyarray) IS
	'whether the filter contains all elements; NULL elements are skipped';

CREATE FUNCTION bloom_contains_all(filter bloom, keys bloom_keys) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_contains_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_contains_all(bloom, bloom_keys) IS
	'whether the filter contains all elements; NULL elements are skipped';

CREATE FUNCTION bloom_contains_each(filter bloom, keys anyarray) RETURNS boolean[]
	AS 'MODULE_PATHNAME', 'bloom_contains_each' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_contains_each(bloom, anyarray) IS 'bloom_contains for each element of an array, in order';

CREATE FUNCTION bloom_contains_each(filter bloom, keys bloom_keys) RETURNS boolean[]
	AS 'MODULE_PATHNAME', 'bloom_contains_each' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_contains_each(bloom, bloom_keys) IS 'bloom_contains for each element of an array, in order';

CREATE FUNCTION bloom_contains_count(
	filter bloom,
	keys anyarray,
	OUT contained bigint,
	OUT estimate float8)
	AS 'MODULE_PATHNAME', 'bloom_contains_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_contains_count(bloom, anyarray) IS
	'how many elements the filter contains, and an estimate of those that were added; NULL elements are skipped';

CREATE FUNCTION bloom_contains_count(
	filter bloom,
	keys bloom_keys,
	OUT contained bigint,
	OUT estimate float8)
	AS 'MODULE_PATHNAME', 'bloom_contains_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_contains_count(bloom, bloom_keys) IS
	'how many elements the filter contains, and an estimate of those that were added; NULL elements are skipped';

CREATE FUNCTION bloom_new_keys(filter bloom, keys anyarray) RETURNS anyarray
	AS 'MODULE_PATHNAME', 'bloom_new_keys' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_new_keys(bloom, anyarray) IS
	'elements that the filter does not contain, each once, in order; NULL elements are skipped';

CREATE FUNCTION bloom_new_keys(filter bloom, keys bloom_keys) RETURNS text[]
	AS 'MODULE_PATHNAME', 'bloom_new_keys' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_new_keys(bloom, bloom_keys) IS
	'elements that the filter does not contain, each once, as text; NULL elements are skipped';

--
-- Hashes and shards
--

CREATE FUNCTION bloom_hash(key anyelement, seed bigint DEFAULT 0) RETURNS bigint
	AS 'MODULE_PATHNAME', 'bloom_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bloom_hash(anyelement, bigint) IS '64-bit hash of a key, as in filters with this seed';

CREATE FUNCTION bloom_hash(key bloom_key, seed bigint DEFAULT 0) RETURNS bigint
	AS 'MODULE_PATHNAME', 'bloom_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bloom_hash(bloom_key, bigint) IS '64-bit hash of a key, as in filters with this seed';

CREATE FUNCTION bloom_add_hash(filter bloom, hash bigint) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100 SUPPORT bloom_add_support;
COMMENT ON FUNCTION bloom_add_hash(bloom, bigint) IS 'add a key by its hash from bloom_hash; NULL is ignored';

CREATE FUNCTION bloom_contains_hash(filter bloom, hash bigint) RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 SUPPORT bloom_contains_support;
COMMENT ON FUNCTION bloom_contains_hash(bloom, bigint) IS
	'bloom_contains for the key of a hash from bloom_hash with the seed of the filter';

CREATE FUNCTION bloom_shard(key anyelement, shards int) RETURNS int
	AS 'MODULE_PATHNAME', 'bloom_shard' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bloom_shard(anyelement, int) IS
	'shard of a key, 0 to shards - 1, independent of its bits in a filter';

CREATE FUNCTION bloom_shard(key bloom_key, shards int) RETURNS int
	AS 'MODULE_PATHNAME', 'bloom_shard' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bloom_shard(bloom_key, int) IS
	'shard of a key, 0 to shards - 1, independent of its bits in a filter';

--
-- Set operations
--

CREATE FUNCTION bloom_union(a bloom, b bloom) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION bloom_union(bloom, bloom) IS 'union of two filters; NULL is ignored';

CREATE OPERATOR | (
	FUNCTION = bloom_union,
	LEFTARG = bloom,
	RIGHTARG = bloom,
	COMMUTATOR = |
);
COMMENT ON OPERATOR | (bloom, bloom) IS 'union of two filters';

CREATE FUNCTION bloom_intersection(a bloom, b bloom) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION bloom_intersection(bloom, bloom) IS
	'filter that contains every key that both filters contain';

CREATE OPERATOR & (
	FUNCTION = bloom_intersection,
	LEFTARG = bloom,
	RIGHTARG = bloom,
	COMMUTATOR = &
);
COMMENT ON OPERATOR & (bloom, bloom) IS 'intersection of two filters';

CREATE FUNCTION bloom_intersection_cardinality(VARIADIC filters bloom[]) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION bloom_intersection_cardinality(bloom[]) IS
	'estimated number of keys that up to 8 filters have in common; exact if all are sparse';

CREATE FUNCTION bloom_difference_cardinality(a bloom, b bloom) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION bloom_difference_cardinality(bloom, bloom) IS
	'keys of the first filter that are not in the second: exact if both are sparse, of a union at most, else estimated';

--
-- Equality, order and hashing
--
-- Filters are equal if their bytes are, and ordered by them.  A value of type
-- bloom is stored as one of type bytea is.
--

CREATE FUNCTION bloom_eq(bloom, bloom) RETURNS boolean
	AS 'byteaeq' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_eq(bloom, bloom) IS 'implementation of = operator';

CREATE FUNCTION bloom_ne(bloom, bloom) RETURNS boolean
	AS 'byteane' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_ne(bloom, bloom) IS 'implementation of <> operator';

CREATE OPERATOR = (
	FUNCTION = bloom_eq,
	LEFTARG = bloom,
	RIGHTARG = bloom,
	COMMUTATOR = =,
	NEGATOR = <>,
	RESTRICT = eqsel,
	JOIN = eqjoinsel,
	HASHES,
	MERGES
);
COMMENT ON OPERATOR = (bloom, bloom) IS 'equal parameters, keys and form: the same image';

CREATE OPERATOR <> (
	FUNCTION = bloom_ne,
	LEFTARG = bloom,
	RIGHTARG = bloom,
	COMMUTATOR = <>,
	NEGATOR = =,
	RESTRICT = neqsel,
	JOIN = neqjoinsel
);
COMMENT ON OPERATOR <> (bloom, bloom) IS 'not equal';

CREATE FUNCTION bloom_lt(bloom, bloom) RETURNS boolean
	AS 'bytealt' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_lt(bloom, bloom) IS 'implementation of < operator';

CREATE FUNCTION bloom_le(bloom, bloom) RETURNS boolean
	AS 'byteale' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_le(bloom, bloom) IS 'implementation of <= operator';

CREATE FUNCTION bloom_ge(bloom, bloom) RETURNS boolean
	AS 'byteage' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_ge(bloom, bloom) IS 'implementation of >= operator';

CREATE FUNCTION bloom_gt(bloom, bloom) RETURNS boolean
	AS 'byteagt' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_gt(bloom, bloom) IS 'implementation of > operator';

CREATE OPERATOR < (
	FUNCTION = bloom_lt,
	LEFTARG = bloom,
	RIGHTARG = bloom,
	COMMUTATOR = >,
	NEGATOR = >=,
	RESTRICT = scalarltsel,
	JOIN = scalarltjoinsel
);
COMMENT ON OPERATOR < (bloom, bloom) IS 'order of the images, for sorting';

CREATE OPERATOR <= (
	FUNCTION = bloom_le,
	LEFTARG = bloom,
	RIGHTARG = bloom,
	COMMUTATOR = >=,
	NEGATOR = >,
	RESTRICT = scalarlesel,
	JOIN = scalarlejoinsel
);
COMMENT ON OPERATOR <= (bloom, bloom) IS 'order of the images, for sorting';

CREATE OPERATOR >= (
	FUNCTION = bloom_ge,
	LEFTARG = bloom,
	RIGHTARG = bloom,
	COMMUTATOR = <=,
	NEGATOR = <,
	RESTRICT = scalargesel,
	JOIN = scalargejoinsel
);
COMMENT ON OPERATOR >= (bloom, bloom) IS 'order of the images, for sorting';

CREATE OPERATOR > (
	FUNCTION = bloom_gt,
	LEFTARG = bloom,
	RIGHTARG = bloom,
	COMMUTATOR = <,
	NEGATOR = <=,
	RESTRICT = scalargtsel,
	JOIN = scalargtjoinsel
);
COMMENT ON OPERATOR > (bloom, bloom) IS 'order of the images, for sorting';

CREATE FUNCTION bloom_cmp(bloom, bloom) RETURNS int
	AS 'byteacmp' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION bloom_cmp(bloom, bloom) IS 'less-equal-greater, by the bytes of the images';

CREATE OPERATOR CLASS bloom_ops
	DEFAULT FOR TYPE bloom USING btree AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >,
	FUNCTION 1 bloom_cmp(bloom, bloom);
COMMENT ON OPERATOR CLASS bloom_ops USING btree IS 'order of filters for ORDER BY and DISTINCT in aggregates';
COMMENT ON OPERATOR FAMILY bloom_ops USING btree IS 'order of filters for ORDER BY and DISTINCT in aggregates';

CREATE FUNCTION hash_bloom(bloom) RETURNS int
	AS 'hashvarlena' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION hash_bloom(bloom) IS '32-bit hash of a filter as a value';

CREATE FUNCTION hash_bloom_extended(bloom, bigint) RETURNS bigint
	AS 'hashvarlenaextended' LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE COST 200;
COMMENT ON FUNCTION hash_bloom_extended(bloom, bigint) IS '64-bit hash of a filter as a value';

CREATE OPERATOR CLASS bloom_ops
	DEFAULT FOR TYPE bloom USING hash AS
	OPERATOR 1 =,
	FUNCTION 1 hash_bloom(bloom),
	FUNCTION 2 hash_bloom_extended(bloom, bigint);
COMMENT ON OPERATOR CLASS bloom_ops USING hash IS 'equality of filters for DISTINCT, GROUP BY and hash joins';
COMMENT ON OPERATOR FAMILY bloom_ops USING hash IS 'equality of filters for DISTINCT, GROUP BY and hash joins';

--
-- Statistics and size
--

CREATE FUNCTION bloom_cardinality(filter bloom) RETURNS bigint
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bloom_cardinality(bloom) IS
	'number of distinct keys; exact if sparse, else estimated; an upper bound for intersections and several layers';

CREATE FUNCTION bloom_fpp(filter bloom) RETURNS float8
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_fpp(bloom) IS 'current false-positive rate, 0 to 1, computed from the bits set';

CREATE FUNCTION bloom_info(
	filter bloom,
	OUT key_type text,
	OUT form text,
	OUT fpp float8,
	OUT expected bigint,
	OUT seed bigint,
	OUT layers int,
	OUT bits bigint,
	OUT hashes int,
	OUT block_bits int,
	OUT bits_set bigint,
	OUT fill float8,
	OUT cardinality bigint,
	OUT current_fpp float8,
	OUT bytes bigint,
	OUT over_capacity boolean)
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_info(bloom) IS
	'parameters, layout, size in bytes, number of keys and current false-positive rate';

CREATE FUNCTION bloom_sizing(
	fpp float8,
	expected float8,
	OUT bits bigint,
	OUT bytes bigint,
	OUT bits_per_key float8,
	OUT hashes int,
	OUT block_bits int,
	OUT filters int,
	OUT standard_bits bigint,
	OUT standard_hashes int,
	OUT max_keys bigint,
	OUT max_grown_keys bigint)
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_sizing(float8, float8) IS
	'size and number of filters for expected distinct keys at a false-positive rate, and the keys that they can hold';

CREATE FUNCTION bloom_compact(filter bloom) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_compact(bloom) IS
	'filter of the same keys in less space, where there is something to save';

--
-- Aggregates over keys
--
-- Why the state is of type internal for keys of any type is told in
-- src/sql/agg.c.  In the library, both types of states are the same.
--

CREATE FUNCTION bloom_agg_support(internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloom_agg_support(internal) IS
	'planner support for aggregates over keys: size of a state for expected keys';

CREATE FUNCTION bloom_agg_serialfn(internal) RETURNS bytea
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_agg_serialfn(internal) IS 'serialization function of bloom_agg';

CREATE FUNCTION bloom_agg_deserialfn(bytea, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_agg_deserialfn(bytea, internal) IS 'deserialization function of bloom_agg';

CREATE FUNCTION bloom_agg_transfn(internal, anyelement) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloom_agg_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_transfn(internal, anyelement) IS 'transition function of bloom_agg';

CREATE FUNCTION bloom_agg_transfn(internal, anyelement, float8) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloom_agg_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_transfn(internal, anyelement, float8) IS 'transition function of bloom_agg';

CREATE FUNCTION bloom_agg_transfn(internal, anyelement, float8, float8) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloom_agg_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_transfn(internal, anyelement, float8, float8) IS 'transition function of bloom_agg';

CREATE FUNCTION bloom_agg_transfn(internal, anyelement, float8, float8, bigint) RETURNS internal
	AS 'MODULE_PATHNAME', 'bloom_agg_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_transfn(internal, anyelement, float8, float8, bigint) IS
	'transition function of bloom_agg';

CREATE FUNCTION bloom_agg_key_transfn(bloom, bloom_key) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_agg_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_key_transfn(bloom, bloom_key) IS 'transition function of bloom_agg';

CREATE FUNCTION bloom_agg_key_transfn(bloom, bloom_key, float8) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_agg_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_key_transfn(bloom, bloom_key, float8) IS 'transition function of bloom_agg';

CREATE FUNCTION bloom_agg_key_transfn(bloom, bloom_key, float8, float8) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_agg_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_key_transfn(bloom, bloom_key, float8, float8) IS 'transition function of bloom_agg';

CREATE FUNCTION bloom_agg_key_transfn(bloom, bloom_key, float8, float8, bigint) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_agg_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_key_transfn(bloom, bloom_key, float8, float8, bigint) IS
	'transition function of bloom_agg';

CREATE FUNCTION bloom_agg_hash_transfn(bloom, bigint) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_agg_hash_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_hash_transfn(bloom, bigint) IS 'transition function of bloom_agg_hash';

CREATE FUNCTION bloom_agg_hash_transfn(bloom, bigint, float8) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_agg_hash_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_hash_transfn(bloom, bigint, float8) IS 'transition function of bloom_agg_hash';

CREATE FUNCTION bloom_agg_hash_transfn(bloom, bigint, float8, float8) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_agg_hash_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_hash_transfn(bloom, bigint, float8, float8) IS 'transition function of bloom_agg_hash';

CREATE FUNCTION bloom_agg_hash_transfn(bloom, bigint, float8, float8, bigint) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_agg_hash_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 20 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_hash_transfn(bloom, bigint, float8, float8, bigint) IS
	'transition function of bloom_agg_hash';

CREATE FUNCTION bloom_agg_combinefn(internal, internal) RETURNS internal
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_combinefn(internal, internal) IS 'combine function of bloom_agg';

CREATE FUNCTION bloom_agg_finalfn(internal) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_agg_finalfn(internal) IS 'final function of bloom_agg';

CREATE FUNCTION bloom_agg_hash_combinefn(bloom, bloom) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_agg_combinefn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000 SUPPORT bloom_agg_support;
COMMENT ON FUNCTION bloom_agg_hash_combinefn(bloom, bloom) IS
	'combine function of bloom_agg_hash and of bloom_agg over bloom_key';

CREATE FUNCTION bloom_agg_hash_finalfn(bloom) RETURNS bloom
	AS 'MODULE_PATHNAME', 'bloom_agg_finalfn' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bloom_agg_hash_finalfn(bloom) IS 'final function of bloom_agg_hash and of bloom_agg over bloom_key';

CREATE AGGREGATE bloom_agg(key anyelement) (
	SFUNC = bloom_agg_transfn,
	STYPE = internal,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_finalfn,
	COMBINEFUNC = bloom_agg_combinefn,
	SERIALFUNC = bloom_agg_serialfn,
	DESERIALFUNC = bloom_agg_deserialfn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(anyelement) IS 'filter of keys, with fpp 0.01 and sized for its keys; NULL is ignored';

CREATE AGGREGATE bloom_agg(key anyelement, fpp float8) (
	SFUNC = bloom_agg_transfn,
	STYPE = internal,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_finalfn,
	COMBINEFUNC = bloom_agg_combinefn,
	SERIALFUNC = bloom_agg_serialfn,
	DESERIALFUNC = bloom_agg_deserialfn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(anyelement, float8) IS 'filter of keys, sized for its keys; NULL is ignored';

CREATE AGGREGATE bloom_agg(key anyelement, fpp float8, expected float8) (
	SFUNC = bloom_agg_transfn,
	STYPE = internal,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_finalfn,
	COMBINEFUNC = bloom_agg_combinefn,
	SERIALFUNC = bloom_agg_serialfn,
	DESERIALFUNC = bloom_agg_deserialfn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(anyelement, float8, float8) IS
	'filter of keys, sized for expected distinct keys, or for its keys if that is NULL';

CREATE AGGREGATE bloom_agg(key anyelement, fpp float8, expected float8, seed bigint) (
	SFUNC = bloom_agg_transfn,
	STYPE = internal,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_finalfn,
	COMBINEFUNC = bloom_agg_combinefn,
	SERIALFUNC = bloom_agg_serialfn,
	DESERIALFUNC = bloom_agg_deserialfn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(anyelement, float8, float8, bigint) IS
	'filter of keys, sized for expected distinct keys and hashed with seed';

CREATE AGGREGATE bloom_agg(key bloom_key) (
	SFUNC = bloom_agg_key_transfn,
	STYPE = bloom,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_hash_finalfn,
	COMBINEFUNC = bloom_agg_hash_combinefn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(bloom_key) IS 'filter of keys, with fpp 0.01 and sized for its keys; NULL is ignored';

CREATE AGGREGATE bloom_agg(key bloom_key, fpp float8) (
	SFUNC = bloom_agg_key_transfn,
	STYPE = bloom,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_hash_finalfn,
	COMBINEFUNC = bloom_agg_hash_combinefn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(bloom_key, float8) IS 'filter of keys, sized for its keys; NULL is ignored';

CREATE AGGREGATE bloom_agg(key bloom_key, fpp float8, expected float8) (
	SFUNC = bloom_agg_key_transfn,
	STYPE = bloom,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_hash_finalfn,
	COMBINEFUNC = bloom_agg_hash_combinefn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(bloom_key, float8, float8) IS
	'filter of keys, sized for expected distinct keys, or for its keys if that is NULL';

CREATE AGGREGATE bloom_agg(key bloom_key, fpp float8, expected float8, seed bigint) (
	SFUNC = bloom_agg_key_transfn,
	STYPE = bloom,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_hash_finalfn,
	COMBINEFUNC = bloom_agg_hash_combinefn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg(bloom_key, float8, float8, bigint) IS
	'filter of keys, sized for expected distinct keys and hashed with seed';

CREATE AGGREGATE bloom_agg_hash(hash bigint) (
	SFUNC = bloom_agg_hash_transfn,
	STYPE = bloom,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_hash_finalfn,
	COMBINEFUNC = bloom_agg_hash_combinefn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg_hash(bigint) IS
	'filter of hashes from bloom_hash, with fpp 0.01 and sized for its keys; NULL is ignored';

CREATE AGGREGATE bloom_agg_hash(hash bigint, fpp float8) (
	SFUNC = bloom_agg_hash_transfn,
	STYPE = bloom,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_hash_finalfn,
	COMBINEFUNC = bloom_agg_hash_combinefn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg_hash(bigint, float8) IS
	'filter of hashes from bloom_hash, sized for its keys; NULL is ignored';

CREATE AGGREGATE bloom_agg_hash(hash bigint, fpp float8, expected float8) (
	SFUNC = bloom_agg_hash_transfn,
	STYPE = bloom,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_hash_finalfn,
	COMBINEFUNC = bloom_agg_hash_combinefn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg_hash(bigint, float8, float8) IS
	'filter of hashes from bloom_hash, sized for expected distinct keys, or for its keys if NULL';

CREATE AGGREGATE bloom_agg_hash(hash bigint, fpp float8, expected float8, seed bigint) (
	SFUNC = bloom_agg_hash_transfn,
	STYPE = bloom,
	SSPACE = 17408,
	FINALFUNC = bloom_agg_hash_finalfn,
	COMBINEFUNC = bloom_agg_hash_combinefn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_agg_hash(bigint, float8, float8, bigint) IS
	'filter of hashes from bloom_hash with this seed, sized for expected distinct keys';

--
-- Aggregates over filters
--

CREATE FUNCTION bloom_union_agg_transfn(bloom, bloom) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION bloom_union_agg_transfn(bloom, bloom) IS 'transition and combine function of bloom_union_agg';

CREATE FUNCTION bloom_union_agg_finalfn(bloom) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_union_agg_finalfn(bloom) IS 'final function of bloom_union_agg';

CREATE AGGREGATE bloom_union_agg(filter bloom) (
	SFUNC = bloom_union_agg_transfn,
	STYPE = bloom,
	SSPACE = 17408,
	FINALFUNC = bloom_union_agg_finalfn,
	COMBINEFUNC = bloom_union_agg_transfn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_union_agg(bloom) IS 'union of filters; NULL is ignored, no filters give an empty one';

CREATE FUNCTION bloom_intersection_agg_transfn(bloom, bloom) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION bloom_intersection_agg_transfn(bloom, bloom) IS
	'transition and combine function of bloom_intersection_agg';

CREATE FUNCTION bloom_intersection_agg_finalfn(bloom) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_intersection_agg_finalfn(bloom) IS 'final function of bloom_intersection_agg';

CREATE AGGREGATE bloom_intersection_agg(filter bloom) (
	SFUNC = bloom_intersection_agg_transfn,
	STYPE = bloom,
	SSPACE = 17408,
	FINALFUNC = bloom_intersection_agg_finalfn,
	COMBINEFUNC = bloom_intersection_agg_transfn,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_intersection_agg(bloom) IS 'intersection of filters; NULL is ignored, no filters give NULL';

--
-- Index access method
--

CREATE FUNCTION bloomfilter_handler(internal) RETURNS index_am_handler
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 1;
COMMENT ON FUNCTION bloomfilter_handler(internal) IS 'handler of access method bloomfilter';

CREATE ACCESS METHOD bloomfilter TYPE INDEX HANDLER bloomfilter_handler;
COMMENT ON ACCESS METHOD bloomfilter IS 'index that is a Bloom filter of its keys; functions look into it';

CREATE OPERATOR FAMILY bloomfilter_ops USING bloomfilter;
COMMENT ON OPERATOR FAMILY bloomfilter_ops USING bloomfilter IS 'all types that can be keys';

-- Keys are hashed as keys of type bloom are, so there are no support functions.
CREATE OPERATOR CLASS bloomfilter_ops
	DEFAULT FOR TYPE anyelement USING bloomfilter FAMILY bloomfilter_ops AS
	STORAGE anyelement;
COMMENT ON OPERATOR CLASS bloomfilter_ops USING bloomfilter IS 'all types that can be keys';

CREATE FUNCTION bloom_index_contains(index regclass, key anyelement)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_index_contains' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 50;
COMMENT ON FUNCTION bloom_index_contains(regclass, anyelement) IS
	'whether the index contains the key; false is certain, true is probable';

CREATE FUNCTION bloom_index_contains(index regclass, key bloom_key)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_index_contains' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 50;
COMMENT ON FUNCTION bloom_index_contains(regclass, bloom_key) IS
	'whether the index contains the key; false is certain, true is probable';

CREATE FUNCTION bloom_index_contains_each(index regclass, keys anyarray)
	RETURNS boolean[]
	AS 'MODULE_PATHNAME', 'bloom_index_contains_each' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_index_contains_each(regclass, anyarray) IS
	'bloom_index_contains for each element, in the form of the array';

CREATE FUNCTION bloom_index_contains_each(index regclass, keys bloom_keys)
	RETURNS boolean[]
	AS 'MODULE_PATHNAME', 'bloom_index_contains_each' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 500;
COMMENT ON FUNCTION bloom_index_contains_each(regclass, bloom_keys) IS
	'bloom_index_contains for each element, in the form of the array';

CREATE FUNCTION bloom_index_gate(index regclass, VARIADIC key "any") RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 50;
COMMENT ON FUNCTION bloom_index_gate(regclass, "any") IS
	'in plans of queries: whether the table may have a row with the key; an error if called by a user';

CREATE FUNCTION bloom_index_partitions(index regclass, key anyelement)
	RETURNS SETOF regclass
	AS 'MODULE_PATHNAME', 'bloom_index_partitions'
	LANGUAGE C STABLE STRICT PARALLEL SAFE COST 5000;
COMMENT ON FUNCTION bloom_index_partitions(regclass, anyelement) IS
	'the partitions of the table of the index that may have the key';

CREATE FUNCTION bloom_index_partitions(index regclass, key bloom_key)
	RETURNS SETOF regclass
	AS 'MODULE_PATHNAME', 'bloom_index_partitions'
	LANGUAGE C STABLE STRICT PARALLEL SAFE COST 5000;
COMMENT ON FUNCTION bloom_index_partitions(regclass, bloom_key) IS
	'the partitions of the table of the index that may have the key';

CREATE FUNCTION bloom_index_info(
	index regclass,
	OUT key_type text,
	OUT fpp float8,
	OUT expected bigint,
	OUT seed bigint,
	OUT layers int,
	OUT pages bigint,
	OUT bytes bigint,
	OUT bits bigint,
	OUT hashes int,
	OUT block_bits int,
	OUT bits_set bigint,
	OUT fill float8,
	OUT cardinality bigint,
	OUT keys_since_build bigint,
	OUT current_fpp float8,
	OUT deleted float8,
	OUT last_rebuild timestamptz)
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 5000;
COMMENT ON FUNCTION bloom_index_info(regclass) IS
	'parameters, layout, size, number of keys and current false-positive rate of an index';

CREATE FUNCTION bloom_index_filter(index regclass) RETURNS bloom
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 5000;
COMMENT ON FUNCTION bloom_index_filter(regclass) IS 'copy of an index as a filter';

CREATE FUNCTION bloom_index_check(index regclass) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 5000;
COMMENT ON FUNCTION bloom_index_check(regclass) IS
	'verify an index: its structure, and that each visible row of the table is found';

--
-- Join filters
--

CREATE FUNCTION bloom_join_probe(filter integer, VARIADIC keys "any") RETURNS boolean
	AS 'MODULE_PATHNAME' LANGUAGE C STABLE PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bloom_join_probe(integer, "any") IS
	'probe in plans with join filters: whether a row may have a match; true if called by a user';
