"""What the drivers of Python share: see check_drivers.py."""
import datetime
import decimal
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


def run_cases(execute):
    """Print the answers of execute(query, type_name, value) to all cases."""
    sys.stdout.reconfigure(encoding='utf-8')
    with open(sys.argv[1], encoding='utf-8') as cases:
        for line in cases:
            name, type_name, value, query = line.rstrip('\n').split('|')
            if type_name == 'list':
                value = value[1:-1].split(',') if value != '{}' else []
            answer = execute(query, type_name, value)
            print('%s\t%s' % (name, 't' if answer is True else answer))


def print_sent(sent_type):
    """Print sent_type(value), the type that is sent for each value."""
    for name, value in VALUES:
        print('sends %s\t%s' % (name, sent_type(value)))
