"""What the checks share: TAP lines and a server.

The server is the one that psql finds by PGHOST, PGPORT, PGDATABASE and
PGUSER.  Its database needs the extension.
"""
import os
import subprocess
import sys
import traceback

# The user's environment must not change what the server prints.
SETTINGS = """
\\set QUIET 1
SET client_min_messages TO error;
SET client_encoding TO 'UTF8';
SET timezone TO 'UTC';
SET datestyle TO 'ISO, MDY';
SET extra_float_digits TO 1;
SET lc_messages TO 'C';
"""


class ServerError(Exception):
    """psql failed; the message is what it printed."""


def psql(script, *options, settings=SETTINGS, database=None):
    """Run a script and return what it prints."""
    command = ['psql', '-X', *options]
    if database is not None:
        command += ['-d', database]
    # A pipe, not -f: then errors do not begin with file name and line.
    process = subprocess.run(
        command, input=(settings + script).encode('utf-8'),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=dict(os.environ, PGCLIENTENCODING='UTF8'))
    output = process.stdout.decode('utf-8')
    if process.returncode != 0:
        raise ServerError(output)
    return output


def rows(script):
    """Run a script that stops at an error; its lines, split at tabs."""
    output = psql(script, '-qAt', '-F', '\t', '-v', 'ON_ERROR_STOP=1')
    return [line.split('\t') for line in output.splitlines()]


def copy_escape(text):
    return (text.replace('\\', '\\\\').replace('\n', '\\n')
            .replace('\r', '\\r').replace('\t', '\\t'))


def copy_data(table, lines):
    """A COPY command with its data; every line is a list of texts."""
    return 'COPY %s FROM stdin;\n%s\\.\n' % (table, ''.join(
        '\t'.join(copy_escape(str(text)) for text in line) + '\n'
        for line in lines))


class Tap:
    """Test Anything Protocol: one line a test, the plan at the end."""

    def __init__(self):
        self.count = self.failed = 0

    def ok(self, passed, name, diagnostic=''):
        self.count += 1
        self.failed += not passed
        print('%sok %d - %s' % ('' if passed else 'not ', self.count, name))
        if not passed:
            for line in str(diagnostic).splitlines():
                print('# ' + line)
        sys.stdout.flush()
        return passed

    def skip(self, name, reason):
        self.count += 1
        print('ok %d - %s # skip %s' % (self.count, name, reason))
        sys.stdout.flush()

    def run(self, name, test):
        """A test passes if it returns nothing; else it returns what differs."""
        try:
            difference = test()
        except ServerError as error:
            difference = error
        except Exception:
            difference = traceback.format_exc()
        self.ok(not difference, name, difference)

    def require_server(self):
        """Stop at once if there is no server."""
        try:
            rows("SELECT bloom_empty();")
        except ServerError as error:
            print('Bail out! %s' % ' '.join(str(error).split()))
            raise SystemExit(1)

    def done(self):
        print('1..%d' % self.count)
        return 1 if self.failed else 0
