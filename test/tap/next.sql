/* The made-up next version of the extension, for 012_upgrade.pl */

\echo Use "ALTER EXTENSION bloomfilter UPDATE" to load this file. \quit

-- A new function
CREATE FUNCTION bloom_next(bloom, anyelement) RETURNS boolean
	AS 'MODULE_PATHNAME', 'bloom_contains'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 30;
COMMENT ON FUNCTION bloom_next(bloom, anyelement) IS 'new in this version';

-- A new operator, aggregate and cast
CREATE OPERATOR |@| (
	LEFTARG = bloom,
	RIGHTARG = bloom,
	FUNCTION = bloom_union,
	COMMUTATOR = |@|
);
COMMENT ON OPERATOR |@| (bloom, bloom) IS 'new in this version';

CREATE AGGREGATE bloom_next_agg(bloom) (
	SFUNC = bloom_union,
	STYPE = bloom,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE bloom_next_agg(bloom) IS 'new in this version';

-- Objects that change
COMMENT ON TYPE bloom IS 'changed in this version';
ALTER FUNCTION bloom_union(bloom, bloom) COST 12345;
