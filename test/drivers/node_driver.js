/*
 * The driver node-postgres: see check_drivers.py.
 *
 * Parameters have no type; Buffers are sent in binary.  Results in binary
 * would go through UTF-8, which only text survives, so bytea is fetched.
 */
'use strict';

const fs = require('fs');
const { Client } = require('pg');

const casts = { none: '$1', list: '$1', text: '$1::text', bigint: '$1::bigint' };

/* The list {a,b} */
function toList(text)
{
	return text === '{}' ? [] : text.slice(1, -1).split(',');
}

async function main()
{
	const client = new Client();

	await client.connect();
	for (const line of fs.readFileSync(process.argv[2], 'utf8').trim().split('\n'))
	{
		const [name, kind, value, query] = line.split('|');
		const result = await client.query({
			text: query.replace('$1', casts[kind]),
			values: [kind === 'list' ? toList(value) : value],
			rowMode: 'array'
		});
		const answer = result.rows[0][0];

		console.log(name + '\t' + (answer === true ? 't' : answer));
	}

	const fetched = await client.query('SELECT f, f::bytea AS image FROM driver_text');

	fs.writeFileSync('text', fetched.rows[0].f);
	fs.writeFileSync('binary', fetched.rows[0].image);
	await client.query("INSERT INTO driver_back VALUES ('text', $1), ('binary', $2)",
		[fs.readFileSync('back.text', 'utf8'), fs.readFileSync('back.binary')]);
	await client.end();
}

main().catch((error) => {
	console.error(error);
	process.exit(1);
});
