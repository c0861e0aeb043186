"""The driver psycopg2: see check_drivers.py.

Parameters are pasted into the query as literals, which have no type.
"""
import psycopg2
import psycopg2.extras

import python_driver

CASTS = {'none': '%s', 'list': '%s', 'text': '%s::text', 'bigint': '%s::bigint'}

psycopg2.extras.register_uuid()
connection = psycopg2.connect('')
connection.autocommit = True
connection.set_client_encoding('UTF8')
cursor = connection.cursor()


def execute(query, type_name, value):
    if type_name == 'bigint':
        value = int(value)
    cursor.execute(query.replace('$1', CASTS[type_name]), (value,))
    return cursor.fetchone()[0]


def sent_type(value):
    sent = execute('SELECT pg_typeof($1)::text', 'none', value)
    return 'none' if sent == 'unknown' else sent


python_driver.run_cases(execute)
python_driver.print_sent(sent_type)

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
