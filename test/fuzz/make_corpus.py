#!/usr/bin/env python3
"""Writes the seed corpus of the fuzz targets.

    test/fuzz/make_corpus.py DIRECTORY

Each target gets a directory: DIRECTORY/image, laws and layers.  The images
are those of test/vectors, alone and in pairs; the inputs of the other targets
describe what to build (see the targets).  FOUND has inputs that once made a
target fail.
"""

import base64
import json
import pathlib
import re
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent / 'vectors' / 'filters.jsonl'
FOUND = [
    ('image', 'found-expected-beyond-one-layer',
     '424c4d46010101010300000000000000000000002a000000000000009a99999999'
     '99a93f2c0100cf0000000004000000090400000e000000000000009a4c99999999'
     'a93f87030000000000002ca294b8b40327c60a04a8ed0954c3b408482e223243a0'
     '6c042cd23b5289ec4b2412089860216a60b0e5b424582008d84f85d8d260b71dea'
     'c7d570c4a4c342aac5d8f0c286cde9f594adb0468ea26af67fd55cdd1ceeb1a49f'
     '0a5d29e07239a1eaee44ca5567728c289b60375d35821832571330ad85274a94eb'
     '44e2ac1e6299b0680c43d794233a1c4536cb6cb28e1b796062c613d0554619f650'
     'b90844920c24abce43d80064d802284bd1830f3acb10e3ffc0b171968e77cce0ce'
     'a518b24410a25a356d908b11bdd9066aad781821661f5028151f387634d68c1af0'
     '288b0c5c90f03d5b282bc1b2c827ba08595d232cab7858d02c9c9ea366e92007c8'
     '843c'),
    ('image', 'found-layer-of-lower-rate',
     '424c4d46010101010300000000000000000000002a000000000000009a99999999'
     '99a93f2c017e000000000004000000090400002e010000000000009a9999560100'
     '023f87030000000000002ca294b8b40327c60a04a8ed0954c3b408482e223243a0'
     '6c042cd23b5289ec4b2412089860216a60b0e5b424582008d84f85d8d260b71dea'
     'c7d570c4a4c342aac5d8f0c286cde9f594adb0468ea26af67fd55cdd1ceeb1a49f'
     '0a6d29e07239a1eaee44ca5567728c289b60375d35821832571330ad85274a94eb'
     '44e2ac1e6299b0680c43d794233a1c4536cb6cb20e1b796062c613d0554619f659'
     'b90844920c24abce43d80064d802284bd1830f3acb10e3ffc0b171968e77cce0ce'
     'a518b24410a25a356d908b11bdd9066aad781821661f5028151f387634d68c1af0'
     '288b0c5c90f03d5b282bc1b2c827ba08595d232cab7858d02cc8e19c9e660720a3'
     '843c'),
    ('laws', 'found-order-of-layers',
     '00ffb402fefd0a00000a003fffb402fd0a0000009001'),
    ('layers', 'found-folded-to-one-shape',
     'c2c202c204c204c204c200b1034c005608c300200666002a0097060702c4000f08'
     '7e08ff080702c80854086600c9009005bc0281000701bb05eb01a005ea006608e2'
     '020402400049073604c203da0801'),
    ('layers', 'found-no-layer-left',
     '031e05e205e205e205ff080e00e205e208e205e205e205e205e205e208e205e205'
     'e205e205e205080181050506040818060008a00800000100'),
]


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
        ('empty', 'sizes-itself-13-keys'),
        ('sizes-itself-13-keys', 'dense-fpp-0-01-300-of-300-keys'),
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
    for target, name, content in FOUND:
        (corpus / target / name).write_bytes(bytes.fromhex(content))


if __name__ == '__main__':
    main()
