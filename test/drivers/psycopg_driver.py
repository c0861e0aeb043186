"""The driver psycopg 3: see check_drivers.py.

Strings are sent without a type unless another dumper is registered.  In
binary, a type that it does not know comes as bytes.
"""
import psycopg
from psycopg.types.numeric import Int8
from psycopg.types.string import StrDumper

import python_driver

connection = psycopg.connect('', autocommit=True, client_encoding='UTF8')
typed = psycopg.connect('', autocommit=True, client_encoding='UTF8')
typed.adapters.register_dumper(str, StrDumper)


def execute(query, type_name, value):
    if type_name == 'bigint':
        value = Int8(value)
    return (typed if type_name == 'text' else connection).execute(
        query.replace('$1', '%s'), (value,)).fetchone()[0]


def sent_type(value):
    try:
        return connection.execute('SELECT pg_typeof(%s)::text',
                                  (value,)).fetchone()[0]
    except psycopg.errors.IndeterminateDatatype:
        return 'none'


python_driver.run_cases(execute)
python_driver.print_sent(sent_type)

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
