"""The driver psql: see check_drivers.py."""
import subprocess
import sys

NAMES = {'none': '', 'list': '', 'text': '(text)', 'bigint': '(bigint)'}


def psql(script, *options):
    return subprocess.run(
        ['psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', *options],
        input=script.encode(), stdout=subprocess.PIPE, check=True).stdout


with open(sys.argv[1], encoding='utf-8') as cases:
    for line in cases:
        name, type_name, value, query = line.rstrip('\n').split('|')
        answer = psql("PREPARE q %s AS %s;\nEXECUTE q (:'value');\n"
                      % (NAMES[type_name], query), '-v', 'value=' + value)
        print('%s\t%s' % (name, answer.decode().strip()))

with open('text', 'wb') as file:
    file.write(psql('SELECT f FROM driver_text;').strip())
# COPY in binary format: 19 bytes of header, then the number of columns and
# the length of the value; behind it, the end mark.
psql("\\copy driver_text TO 'copied' (FORMAT binary)\n")
with open('copied', 'rb') as file:
    copied = file.read()
length = int.from_bytes(copied[21:25], 'big')
with open('binary', 'wb') as file:
    file.write(copied[25:25 + length])

psql("\\set content `cat back.text`\n"
     "INSERT INTO driver_back VALUES ('text', :'content');\n")
with open('back.binary', 'rb') as file:
    image = file.read()
with open('to_copy', 'wb') as file:
    file.write(copied[:19] + (2).to_bytes(2, 'big')
               + (6).to_bytes(4, 'big') + b'binary'
               + len(image).to_bytes(4, 'big') + image + b'\xff\xff')
psql("\\copy driver_back FROM 'to_copy' (FORMAT binary)\n")
