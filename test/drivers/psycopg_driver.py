"""The driver psycopg 3: see check_drivers.py.

Strings are sent without a type unless another dumper is registered.  In
binary, a type that it does not know comes as bytes.
"""
import datetime
import decimal
import sys
import uuid

import psycopg
from psycopg.types.numeric import Int8
from psycopg.types.string import StrDumper

connection = psycopg.connect('', autocommit=True, client_encoding='UTF8')
typed = psycopg.connect('', autocommit=True, client_encoding='UTF8')
typed.adapters.register_dumper(str, StrDumper)
sys.stdout.reconfigure(encoding='utf-8')


def parameter(type_name, value):
    if type_name == 'bigint':
        return Int8(value)
    if type_name == 'list':
        return value[1:-1].split(',') if value != '{}' else []
    return value


with open(sys.argv[1], encoding='utf-8') as cases:
    for line in cases:
        name, type_name, value, query = line.rstrip('\n').split('|')
        cursor = (typed if type_name == 'text' else connection).execute(
            query.replace('$1', '%s'),
            (parameter(type_name, value),))
        answer = cursor.fetchone()[0]
        print('%s\t%s' % (name, 't' if answer is True else answer))

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
    try:
        cursor = connection.execute('SELECT pg_typeof(%s)::text', (value,))
        sent = cursor.fetchone()[0]
    except psycopg.errors.IndeterminateDatatype:
        sent = 'none'
    print('sends %s\t%s' % (name, sent))

text = connection.execute('SELECT f FROM driver_text').fetchone()[0]
with open('text', 'w') as file:
    file.write(text)
binary = connection.execute('SELECT f FROM driver_text',
                            binary=True).fetchone()[0]
with open('binary', 'wb') as file:
    file.write(binary)

with open('back.text') as file:
    connection.execute("INSERT INTO driver_back VALUES ('text', %s)",
                       (file.read(),))
# In a binary COPY the bytes are taken for those of the column.
with open('back.binary', 'rb') as file, connection.cursor() as cursor:
    with cursor.copy('COPY driver_back FROM STDIN (FORMAT binary)') as copy:
        copy.set_types(['text', 'bytea'])
        copy.write_row(('binary', file.read()))
