--
-- CATALOG
-- The objects of the extension, and checks that each is declared completely.
--
\pset format unaligned
\pset tuples_only

-- All members of the extension.  Array types are members only in some
-- versions of PostgreSQL.
CREATE VIEW members AS
  SELECT classid, objid, pg_describe_object(classid, objid, 0) AS object
  FROM pg_depend
  WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND
    refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter') AND
    NOT (classid = 'pg_type'::regclass AND objid IN (SELECT typarray FROM pg_type));

-- Incomplete declarations.  VOLATILE, PARALLEL UNSAFE and, in C, COST 1 are
-- the defaults of CREATE FUNCTION.
CREATE VIEW offenders AS
  SELECT object, 'has no comment' AS offence
  FROM members
  WHERE COALESCE(obj_description(objid, classid::regclass::name), '') = ''
  UNION ALL
  SELECT object, 'is not parallel safe'
  FROM members JOIN pg_proc p ON objid = p.oid
  WHERE classid = 'pg_proc'::regclass AND proparallel <> 's' AND
    proname NOT IN ('bloom_index_info', 'bloom_index_filter', 'bloom_index_check')
  UNION ALL
  SELECT object, 'is not immutable'
  FROM members JOIN pg_proc p ON objid = p.oid
  WHERE classid = 'pg_proc'::regclass AND provolatile <> 'i' AND
    proname NOT IN ('bloom_key_recv', 'bloom_key_send', 'bloom_keys_recv', 'bloom_keys_send', 'bloom_contsel', 'bloom_contjoinsel',
      'bloom_join_probe') AND
    (provolatile <> 's' OR proname NOT LIKE 'bloom\_index\_%')
  UNION ALL
  SELECT object, 'has no cost'
  FROM members JOIN pg_proc p ON objid = p.oid
  WHERE classid = 'pg_proc'::regclass AND prokind = 'f' AND procost = 1 AND
    proname !~ '^bloom_keys?_|_support$|^bloom_cont(join)?sel$|^bloom_to_bytea$|^bloomfilter_handler$'
  UNION ALL
  SELECT object, 'has no path to serialize its state'
  FROM members JOIN pg_aggregate a ON objid = a.aggfnoid
  WHERE classid = 'pg_proc'::regclass AND
    (0 IN (aggfinalfn, aggcombinefn) OR aggtranstype = 'internal'::regtype AND 0 IN (aggserialfn, aggdeserialfn))
  UNION ALL
  SELECT object, 'is a predicate without commutator or estimators'
  FROM members JOIN pg_operator o ON objid = o.oid
  WHERE classid = 'pg_operator'::regclass AND oprresult = 'bool'::regtype AND
    0 IN (oprcom, oprrest, oprjoin)
  UNION ALL
  SELECT object, 'has the wrong estimators'
  FROM members JOIN pg_operator o ON objid = o.oid
  WHERE classid = 'pg_operator'::regclass AND oprresult = 'bool'::regtype AND 0 NOT IN (oprrest, oprjoin) AND
    (oprname, oprrest::text, oprjoin::text) NOT IN (('=', 'eqsel', 'eqjoinsel'), ('<>', 'neqsel', 'neqjoinsel'),
      ('@>', 'bloom_contsel', 'bloom_contjoinsel'), ('<@', 'bloom_contsel', 'bloom_contjoinsel'),
      ('<', 'scalarltsel', 'scalarltjoinsel'), ('<=', 'scalarlesel', 'scalarlejoinsel'),
      ('>', 'scalargtsel', 'scalargtjoinsel'), ('>=', 'scalargesel', 'scalargejoinsel'))
  UNION ALL
  -- A function's estimate comes from its support function, an operator's not.
  SELECT object, 'is estimated otherwise than its operator'
  FROM members JOIN pg_proc p ON objid = p.oid JOIN pg_operator o ON oprcode = p.oid
  WHERE classid = 'pg_proc'::regclass AND
    (oprrest::text = 'bloom_contsel') <> (prosupport::text = 'bloom_contains_support')
  UNION ALL
  SELECT object, 'takes part in equality without a negator'
  FROM members JOIN pg_operator o ON objid = o.oid
    LEFT JOIN pg_operator n ON o.oprnegate = n.oid
  WHERE classid = 'pg_operator'::regclass AND
    (o.oprname IN ('=', '<>') OR o.oprnegate <> 0) AND
    (n.oprleft, n.oprright, n.oprresult, n.oprnegate) IS DISTINCT FROM
    (o.oprleft, o.oprright, o.oprresult, o.oid)
  UNION ALL
  SELECT object, 'has the wrong commutator'
  FROM members JOIN pg_operator o ON objid = o.oid
    LEFT JOIN pg_operator c ON o.oprcom = c.oid
  WHERE classid = 'pg_operator'::regclass AND
    (c.oprleft, c.oprright, c.oprresult, c.oprcom) IS DISTINCT FROM
    (o.oprright, o.oprleft, o.oprresult, o.oid);

SELECT * FROM offenders ORDER BY object, offence;

-- The view finds incomplete declarations.
BEGIN;
CREATE FUNCTION careless(bloom, bloom) RETURNS bool LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION careless(bloom) RETURNS int LANGUAGE internal IMMUTABLE PARALLEL SAFE AS 'byteaoctetlen';
CREATE OPERATOR &&& (FUNCTION = careless, LEFTARG = bloom, RIGHTARG = bloom);
CREATE OPERATOR <> (FUNCTION = bloom_contains, LEFTARG = bloom, RIGHTARG = bloom_key, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE AGGREGATE careless_agg(bloom) (SFUNC = bloom_union, STYPE = bloom);
CREATE CAST (bloom AS jsonb) WITH INOUT;
ALTER EXTENSION bloomfilter ADD FUNCTION careless(bloom, bloom);
ALTER EXTENSION bloomfilter ADD FUNCTION careless(bloom);
ALTER EXTENSION bloomfilter ADD OPERATOR &&& (bloom, bloom);
ALTER EXTENSION bloomfilter ADD OPERATOR <> (bloom, bloom_key);
ALTER EXTENSION bloomfilter ADD AGGREGATE careless_agg(bloom);
ALTER EXTENSION bloomfilter ADD CAST (bloom AS jsonb);
SELECT * FROM offenders ORDER BY object COLLATE "C", offence COLLATE "C";
ROLLBACK;

-- The functions, their NULL handling, and their planner properties.
SELECT p.oid::regprocedure AS function,
  pg_get_function_result(p.oid) AS result,
  CASE provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' END AS volatility,
  proisstrict AS strict, procost AS cost, CASE WHEN prosupport <> 0 THEN prosupport END AS support
FROM members JOIN pg_proc p ON objid = p.oid
WHERE classid = 'pg_proc'::regclass AND prokind = 'f'
ORDER BY p.oid::regprocedure::text COLLATE "C";

-- Named notation is part of the interface.
SELECT proname AS function, pg_get_function_arguments(p.oid) AS arguments
FROM members JOIN pg_proc p ON objid = p.oid
WHERE classid = 'pg_proc'::regclass AND proargnames IS NOT NULL AND proargmodes IS NULL
ORDER BY proname COLLATE "C", pg_get_function_arguments(p.oid) COLLATE "C";

SELECT p.oid::regprocedure AS function, proargmodes[i] AS mode, proargnames[i] AS column,
  format_type(proallargtypes[i], NULL) AS type
FROM members JOIN pg_proc p ON objid = p.oid, generate_subscripts(proargnames, 1) i
WHERE classid = 'pg_proc'::regclass AND proargmodes IS NOT NULL
ORDER BY p.oid::regprocedure::text COLLATE "C", i;

-- Final functions do not modify the state ('r'), as windows require.  A state
-- has 17 kB where the planner knows no better.
SELECT aggfnoid::regprocedure AS aggregate, aggtranstype::regtype AS state, aggtransspace AS space, aggtransfn,
  aggcombinefn, aggserialfn, aggdeserialfn, aggfinalfn, aggfinalmodify AS modify
FROM members JOIN pg_aggregate a ON objid = a.aggfnoid
WHERE classid = 'pg_proc'::regclass
ORDER BY aggfnoid::regprocedure::text COLLATE "C";

SELECT o.oid::regoperator AS operator, oprcode AS function,
  oprresult::regtype AS result, oprcom::regoperator AS commutator,
  oprnegate::regoperator AS negator, oprrest AS restrict, oprjoin AS join, oprcanhash AS hashes
FROM members JOIN pg_operator o ON objid = o.oid
WHERE classid = 'pg_operator'::regclass
ORDER BY o.oid::regoperator::text COLLATE "C";

SELECT am.amname AS method, c.opcname AS class, c.opcintype::regtype AS type, c.opcdefault AS default, amvalidate(c.oid) AS valid
FROM members JOIN pg_opclass c ON objid = c.oid JOIN pg_am am ON c.opcmethod = am.oid
WHERE classid = 'pg_opclass'::regclass
ORDER BY 1;

-- Storage 'e' is external, alignment 'd' double.
SELECT typname, typlen, typbyval, typstorage, typalign, typcategory, typdelim,
  typinput, typoutput, typreceive, typsend
FROM members JOIN pg_type t ON objid = t.oid
WHERE classid = 'pg_type'::regclass
ORDER BY typname COLLATE "C";

-- Casts are explicit ('e').
SELECT castsource::regtype AS source, casttarget::regtype AS target,
  castfunc::regproc AS function, castcontext AS context
FROM members JOIN pg_cast c ON objid = c.oid
WHERE classid = 'pg_cast'::regclass
ORDER BY 1, 2;

-- All classes of objects, so that the lists above are complete.
SELECT classid::regclass AS catalog FROM members GROUP BY classid ORDER BY classid::regclass::text COLLATE "C";

-- The schema can change, also while functions are in use.
CREATE SCHEMA elsewhere;
CREATE TABLE filters AS SELECT bloom_agg(n) AS numbers, bloom_agg(n::text) AS texts
  FROM generate_series(1, 10) n;
PREPARE probe AS SELECT numbers @> 7 AS number, texts @> '7' AS text FROM filters;
EXECUTE probe;
ALTER EXTENSION bloomfilter SET SCHEMA elsewhere;
SELECT elsewhere.bloom_contains(numbers, 7) AS number,
  texts OPERATOR(elsewhere.@>) '7' AS text FROM filters;
ALTER EXTENSION bloomfilter SET SCHEMA public;
EXECUTE probe;
DROP TABLE filters;
DEALLOCATE probe;
DROP SCHEMA elsewhere;
DROP VIEW offenders, members;

-- DROP EXTENSION removes everything, and an ordinary user with CREATE on the
-- database can create the extension.
DROP EXTENSION bloomfilter;
SELECT count(*) AS left_behind FROM pg_proc WHERE probin LIKE '%bloomfilter%';
CREATE ROLE regress_bloomfilter_user;
DO $$
BEGIN
  EXECUTE format('GRANT CREATE ON DATABASE %I TO regress_bloomfilter_user', current_database());
END
$$;
GRANT CREATE ON SCHEMA public TO regress_bloomfilter_user;
SET ROLE regress_bloomfilter_user;
CREATE EXTENSION bloomfilter;
SELECT bloom_agg(n) @> 3 AS found FROM generate_series(1, 10) n;
DROP EXTENSION bloomfilter;
RESET ROLE;
DROP OWNED BY regress_bloomfilter_user;
DROP ROLE regress_bloomfilter_user;
CREATE EXTENSION bloomfilter;
