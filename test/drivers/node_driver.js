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
		const [name, type, value, query] = line.split('|');
		const result = await client.query({
			text: query.replace('$1', casts[type]),
			values: [type === 'list' ? toList(value) : value],
			rowMode: 'array'
		});
		const answer = result.rows[0][0];

		console.log(name + '\t' + (answer === true ? 't' : answer));
	}

	for (const [name, value] of [
		['a string', 'red'], ['5', 5], ['5000000000', 5000000000n], ['1.5', 1.5],
		['true', true], ['bytes', Buffer.from('red')],
		['a UUID', '00000000-0000-0000-0000-000000000005'],
		['a time stamp with zone', new Date(0)], ['strings', ['red', 'blue']],
		['integers', [5, 6]], ['no elements', []], ['NULL', null]])
	{
		let sent;

		try {
			sent = (await client.query('SELECT pg_typeof($1)::text AS sent',
				[value])).rows[0].sent;
		} catch (error) {
			sent = error.code === '42P18' ? 'none' : error.message;
		}
		console.log('sends ' + name + '\t' + sent);
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
