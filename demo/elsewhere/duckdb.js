/*
 * What doc/REFERENCE.md says about DuckDB in "What others do better", tried:
 *
 *     npm install @duckdb/node-api
 *     node demo/elsewhere/duckdb.js
 *
 * Ends with an error if a claim does not hold.  Tried with DuckDB 1.5.
 */
'use strict';

const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { DuckDBInstance } = require('@duckdb/node-api');

async function main()
{
	const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'duckdb'));
	const file = path.join(directory, 'keys.parquet');
	const connection = await (await DuckDBInstance.create(':memory:')).connect();
	const query = async (sql) =>
		(await connection.runAndReadAll(sql)).getRowsJson();

	console.log('DuckDB', (await query('SELECT version()'))[0][0]);

	/* No type, aggregate or function of filters in SQL */
	const functions = (await query("SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name ILIKE '%bloom%'")).flat();

	assert.deepStrictEqual(functions, ['parquet_bloom_probe']);

	/* A hash join pushes a filter of its build side into the scan of the other. */
	await query('CREATE TABLE dimension AS SELECT (i * 7919) % 9999991 AS id, i % 100 AS part FROM range(1000000) t(i)');
	await query('CREATE TABLE fact AS SELECT (i * 104729) % 10000000 AS id FROM range(10000000) t(i)');

	const plan = (await query('EXPLAIN ANALYZE SELECT count(*) FROM fact JOIN dimension USING (id) WHERE part < 10'))[0].join('\n');

	assert.match(plan, /IN BF\(id\)/);

	/* Parquet: a filter for each row group of a column with a dictionary */
	const lengths = async (distinct) => {
		await query(`COPY (SELECT (i * 7919) % ${distinct} AS id FROM range(100000) t(i)) TO '${file}' (ROW_GROUP_SIZE 10000)`);
		return (await query(`SELECT bloom_filter_length FROM parquet_metadata('${file}')`)).flat();
	};

	assert((await lengths(100003)).every((length) => length === null));
	assert((await lengths(100)).every((length) => length > 0));
	assert((await query(`SELECT * FROM parquet_bloom_probe('${file}', 'id', 12345)`)).every((row) => row[2] === true));
	assert((await query(`SELECT * FROM parquet_bloom_probe('${file}', 'id', 42)`)).every((row) => row[2] === false));
	fs.rmSync(directory, { recursive: true });
	console.log('all claims hold');
}

main().catch((error) => {
	console.error(error);
	process.exit(1);
});
