"""The driver psycopg2: see check_drivers.py.

Parameters are pasted into the query as literals, which have no type.
"""
import sys

import psycopg2

CASTS = {'none': '%s', 'list': '%s', 'text': '%s::text', 'bigint': '%s::bigint'}

connection = psycopg2.connect('')
connection.autocommit = True
connection.set_client_encoding('UTF8')
cursor = connection.cursor()
sys.stdout.reconfigure(encoding='utf-8')


def parameter(kind, value):
    if kind == 'bigint':
        return int(value)
    if kind == 'list':
        return value[1:-1].split(',') if value != '{}' else []
    return value


with open(sys.argv[1], encoding='utf-8') as cases:
    for line in cases:
        name, kind, value, query = line.rstrip('\n').split('|')
        cursor.execute(query.replace('$1', CASTS[kind]),
                       (parameter(kind, value),))
        answer = cursor.fetchone()[0]
        print('%s\t%s' % (name, 't' if answer is True else answer))

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
