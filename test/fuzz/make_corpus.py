#!/usr/bin/env python3
"""Writes the seed corpus of the fuzz targets.

    test/fuzz/make_corpus.py DIRECTORY

Each target gets a directory: DIRECTORY/image, laws and layers.  The images
are those of test/vectors, alone and in pairs; the inputs of the other targets
describe what to build (see the targets).  The files in test/fuzz/corpus once
made a target fail; they are copied.
"""

import base64
import json
import pathlib
import re
import shutil
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent / 'vectors' / 'filters.jsonl'
FOUND = HERE / 'corpus'


def slug(name):
    return re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')


def images():
    with VECTORS.open(encoding='utf-8') as lines:
        for line in lines:
            vector = json.loads(line)
            if 'image' in vector:      # of larger ones there is a digest
                yield slug(vector['name']), base64.b64decode(vector['image'])


def image_inputs():
    of_name = dict(images())
    yield from of_name.items()

    # bytes without a header, and the header of something else
    empty = of_name['empty']
    yield 'not-at-all', b'BLMF'
    yield 'unknown-version', empty[:4] + b'\x02' + empty[5:]
    yield 'expecting-much', empty[:36] + struct.pack('<Q', 400000000)
    yield 'of-no-type', empty + bytes(8)

    # of a type that PostgreSQL hashes, in either byte order
    for order, name in (1, 'citext@C'), (2, 'jsonb'):
        padded = name.encode() + bytes(-len(name) % 8)
        yield f'opclass-{order}', (
            empty[:8] + bytes([65, len(name), order, 6])
            + struct.pack('<I', 1) + empty[16:] + padded + bytes(8))

    pairs = [
        ('empty', 'sizes-itself-12-keys'),
        ('sizes-itself-12-keys', 'dense-fpp-0-01-300-of-300-keys'),
        ('dense-fpp-0-1-300-of-300-keys', 'dense-fpp-0-1-300-of-300-keys'),
        ('grown-to-several-layers', 'union-ored'),
    ]
    for x, y in pairs:
        yield f'pair-{x}-{y}', (
            b'2' + struct.pack('<H', len(of_name[x]))
            + of_name[x] + of_name[y])


def laws_inputs():
    def filters(mode, *described):
        return bytes([mode]) + b''.join(
            struct.pack('<BHHH', *one) for one in described)

    # rate | 128 for compact, expected, first key, number of keys
    yield 'empty', b''
    yield 'sparse', filters(
        1, (2, 1000, 0, 20), (2, 1000, 10, 20), (2, 1000, 500, 9))
    yield 'unsized', filters(
        0, (2, 0, 0, 200), (2, 0, 100, 200), (2, 0, 900, 100))
    yield 'compact', filters(
        0, (130, 0, 0, 200), (130, 0, 100, 900), (130, 9, 0, 100))
    yield 'within-fill', filters(
        1, (2, 900, 0, 300), (2, 900, 200, 300), (2, 900, 600, 300))
    yield 'beyond-fill', filters(
        1, (2, 300, 0, 300), (2, 300, 300, 300), (2, 300, 600, 300))
    yield 'other-parameters', filters(
        0, (1, 100, 0, 100), (3, 500, 0, 400), (6, 50, 0, 50))
    yield 'layers', filters(
        1, (2, 10, 0, 400), (2, 10, 200, 700), (2, 10, 0, 3))


def layers_inputs():
    def program(rate, expected, *steps):
        return bytes([rate, expected]) + bytes(sum(steps, ()))

    add, many, low, reload, compact, same, other, fail, probe = range(9)
    yield 'empty', b''
    yield 'growth', program(3, 5, (many, 20), (reload, 0), (many, 50), (probe, 7))
    yield 'ascending', program(2, 30, (low, 200), (low, 255), (reload, 0))
    yield 'compact', program(
        3, 0, (many, 50), (compact, 0), (many, 10), (compact, 0), (add, 1))
    yield 'unions', program(
        3, 40, (add, 40), (same, 30), (other, 33), (other, 200), (reload, 0),
        (same, 10), (compact, 0), (many, 9))
    yield 'many-unions', program(3, 4, *[(other, 3 * i) for i in range(40)])
    for n in range(1, 12):
        yield f'out-of-memory-{n}', program(
            3, 30, (fail, n), (many, 6), (other, 20), (compact, 0),
            (many, 20))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    corpus = pathlib.Path(sys.argv[1])
    for target, inputs in (('image', image_inputs()), ('laws', laws_inputs()),
                           ('layers', layers_inputs())):
        (corpus / target).mkdir(parents=True, exist_ok=True)
        for name, content in inputs:
            (corpus / target / name).write_bytes(content)
        for path in sorted((FOUND / target).glob('found-*')):
            shutil.copy(path, corpus / target)


if __name__ == '__main__':
    main()
