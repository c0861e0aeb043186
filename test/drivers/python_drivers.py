"""The drivers psycopg 3 and psql: see check_drivers.py.

    python_drivers.py DRIVER CASES
"""
import datetime
import decimal
import subprocess
import sys
import uuid

# The driver chooses the type that is sent for each of these.
VALUES = (
    ('a string', 'red'), ('5', 5), ('5000000000', 5000000000),
    ('1.5', 1.5), ('a decimal', decimal.Decimal('1.50')), ('true', True),
    ('bytes', b'red'), ('a UUID', uuid.UUID(int=5)),
    ('a date', datetime.date(2026, 1, 31)),
    ('a time stamp', datetime.datetime(2026, 1, 31, 12, 0)),
    ('a time stamp with zone', datetime.datetime(
        2026, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)),
    ('strings', ['red', 'blue']), ('integers', [5, 6]), ('no elements', []),
    ('NULL', None))


def run_cases(execute, as_list):
    """Print the answers of execute(query, type_name, value) to all cases.
    A list is one of Python's as_list, else its text."""
    with open(sys.argv[2], encoding='utf-8') as cases:
        for line in cases:
            name, type_name, value, query = line.rstrip('\n').split('|')
            if type_name == 'list' and as_list:
                value = value[1:-1].split(',') if value != '{}' else []
            answer = execute(query, type_name, value)
            print('%s\t%s' % (name, 't' if answer is True else answer))


def print_sent(sent_type):
    """Print sent_type(value), the type that is sent for each value."""
    for name, value in VALUES:
        print('sends %s\t%s' % (name, sent_type(value)))


def read(name):
    with open(name, 'rb') as file:
        return file.read()


def write(name, content):
    with open(name, 'wb') as file:
        file.write(content)


def psycopg3():
    """Strings are sent without a type unless another dumper is registered.
    In binary, a type that it does not know comes as bytes."""
    import psycopg
    from psycopg.types.numeric import Int8
    from psycopg.types.string import StrDumper

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

    run_cases(execute, True)
    print_sent(sent_type)

    text = connection.execute('SELECT f FROM driver_text').fetchone()[0]
    write('text', text.encode())
    write('binary', connection.execute('SELECT f FROM driver_text',
                                       binary=True).fetchone()[0])

    connection.execute("INSERT INTO driver_back VALUES ('text', %s)",
                       (read('back.text').decode(),))
    # In a binary COPY the bytes are taken for those of the column.
    with connection.cursor() as cursor:
        with cursor.copy('COPY driver_back FROM STDIN (FORMAT binary)') as copy:
            copy.set_types(['text', 'bytea'])
            copy.write_row(('binary', read('back.binary')))


def psql():
    names = {'none': '', 'list': '', 'text': '(text)', 'bigint': '(bigint)'}

    def run(script, *options):
        return subprocess.run(
            ['psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', *options],
            input=script.encode(), stdout=subprocess.PIPE, check=True).stdout

    def execute(query, type_name, value):
        return run("PREPARE q %s AS %s;\nEXECUTE q (:'value');\n"
                   % (names[type_name], query),
                   '-v', 'value=' + value).decode().strip()

    run_cases(execute, False)

    write('text', run('SELECT f FROM driver_text;').strip())
    # COPY in binary format: 19 bytes of header, then the number of columns
    # and the length of the value; behind it, the end mark.
    run("\\copy driver_text TO 'copied' (FORMAT binary)\n")
    copied = read('copied')
    length = int.from_bytes(copied[21:25], 'big')
    write('binary', copied[25:25 + length])

    run("\\set content `cat back.text`\n"
        "INSERT INTO driver_back VALUES ('text', :'content');\n")
    image = read('back.binary')
    write('to_copy', copied[:19] + (2).to_bytes(2, 'big')
          + (6).to_bytes(4, 'big') + b'binary'
          + len(image).to_bytes(4, 'big') + image + b'\xff\xff')
    run("\\copy driver_back FROM 'to_copy' (FORMAT binary)\n")


sys.stdout.reconfigure(encoding='utf-8')
{'psycopg3': psycopg3, 'psql': psql}[sys.argv[1]]()
