-- Adding a key logs the bytes of a page that change.  Where this fails on a new
-- major of PostgreSQL, whole pages are logged, since it is not in
-- PGBLOOM_KNOWS_GENERIC_WAL: add it there if src/index/wal.c writes records as
-- its GenericXLogFinish() does.  The least of some keys counts, since a
-- checkpoint may come in between, after which pages are logged as a whole.
CREATE TABLE wal_keys (k int);
CREATE INDEX wal_keys_k ON wal_keys USING bloomfilter (k) WITH (expected = 100);
DO $$
DECLARE
	start pg_lsn;
	bytes numeric := 'infinity';
BEGIN
	FOR i IN 1 .. 10 LOOP
		start := pg_current_wal_insert_lsn();
		INSERT INTO wal_keys VALUES (i);
		COMMIT;
		bytes := least(bytes, pg_current_wal_insert_lsn() - start);
	END LOOP;
	RAISE NOTICE 'less than 1 kB of WAL for a row and its key: %', bytes < 1000;
END $$;
DROP TABLE wal_keys;
