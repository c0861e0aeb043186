"""The driver psycopg2: see check_drivers.py.

Parameters are pasted into the query as literals, which have no type.
"""
import datetime
import decimal
import sys
import uuid

import psycopg2
import psycopg2.extras

CASTS = {'none': '%s', 'list': '%s', 'text': '%s::text', 'bigint': '%s::bigint'}

connection = psycopg2.connect('')
connection.autocommit = True
connection.set_client_encoding('UTF8')
cursor = connection.cursor()
sys.stdout.reconfigure(encoding='utf-8')


def parameter(type_name, value):
    if type_name == 'bigint':
        return int(value)
    if type_name == 'list':
        return value[1:-1].split(',') if value != '{}' else []
    return value


with open(sys.argv[1], encoding='utf-8') as cases:
    for line in cases:
        name, type_name, value, query = line.rstrip('\n').split('|')
        cursor.execute(query.replace('$1', CASTS[type_name]),
                       (parameter(type_name, value),))
        answer = cursor.fetchone()[0]
        print('%s\t%s' % (name, 't' if answer is True else answer))

psycopg2.extras.register_uuid()
for name, value in (
        ('a string', 'red'), ('5', 5), ('5000000000', 5000000000),
        ('1.5', 1.5), ('a decimal', decimal.Decimal('1.50')), ('true', True),
        ('bytes', b'red'), ('a UUID', uuid.UUID(int=5)),
        ('a date', datetime.date(2026, 1, 31)),
        ('a time stamp', datetime.datetime(2026, 1, 31, 12, 0)),
        ('a time stamp with zone', datetime.datetime(
            2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)),
        ('strings', ['red', 'blue']), ('integers', [5, 6]), ('no elements', []),
        ('NULL', None)):
    cursor.execute('SELECT pg_typeof(%s)::text', (value,))
    sent = cursor.fetchone()[0]
    print('sends %s\t%s' % (name, 'none' if sent == 'unknown' else sent))

cursor.execute('SELECT f, f::bytea FROM driver_text')
text, binary = cursor.fetchone()
with open('text', 'w') as file:
    file.write(text)
with open('binary', 'wb') as file:
    file.write(binary)

with open('back.text') as file:
    cursor.execute("INSERT INTO driver_back VALUES ('text', %s)",
                   (file.read(),))
with open('back.binary', 'rb') as file:
    cursor.execute("INSERT INTO driver_back VALUES ('binary', %s::bloom)",
                   (psycopg2.Binary(file.read()),))
