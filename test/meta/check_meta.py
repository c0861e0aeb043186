#!/usr/bin/env python3
"""What several files say must agree: versions, and the reasons for which a join has no filter.

    check_meta.py [--tag=TAG]

META.json, the control file, the SQL script, debian/pgversions, the CHANGELOG, debian/changelog, the RPM spec and, of a
release, the tag name versions. The reasons are in the source, in the table of the documentation, in their order, and in the tests,
which see each of them. META.json has what the PGXN Meta Spec 1.0 (https://pgxn.org/spec/) requires.
"""
import argparse
import json
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]

errors = []


def check(condition, where, text):
    if not condition:
        errors.append(f'{where}: {text}')


def first_match(name, pattern):
    found = re.search(pattern, (TOP / name).read_text(encoding='utf-8'), re.MULTILINE)
    check(found, name, f'has nothing like {pattern!r}')
    return found.group(1) if found else None


def check_meta(meta):
    """What PGXN requires, as far as it concerns us: an upload without it is rejected."""
    for field in 'name', 'version', 'abstract', 'maintainer', 'license', 'provides', 'meta-spec':
        check(meta.get(field), 'META.json', f'lacks {field!r}')
    check(meta['meta-spec']['version'] == '1.0.0', 'META.json', 'is of another specification')
    check(meta['release_status'] in ('stable', 'testing', 'unstable'), 'META.json', 'has another release_status')
    check(all(re.fullmatch(r'[^/\\\x00-\x1f\x7f]{1,256}', tag) for tag in meta['tags']), 'META.json', 'has a bad tag')
    for extension in meta['provides'].values():
        for name in extension['file'], extension['docfile']:
            check((TOP / name).is_file(), 'META.json', f'there is no file {name!r}')


def check_versions(meta, tag):
    """The release is 1.0.0 for PGXN and 1.0 for PostgreSQL; fixes of the library alone are 1.0.1, and still 1.0."""
    default = first_match('bloomfilter.control', r"^default_version = '(.*)'$")
    release = meta['version']
    extension = meta['provides']['bloomfilter']
    check(re.fullmatch(r'\d+\.\d+\.\d+', release) and f'{release}.'.startswith(f'{default}.'), 'META.json',
          f'{release!r} does not belong to default_version {default!r} of bloomfilter.control')
    check(extension['version'] == release, 'META.json', 'provides another version')
    check(extension['file'] == f'bloomfilter--{default}.sql', 'META.json', f'has not the script of version {default}')
    required = meta['prereqs']['runtime']['requires']['PostgreSQL']
    oldest = first_match('debian/pgversions', r'^(\d+)\+$')
    check(required == f'{oldest}.0.0', 'META.json', f'{required!r} is not {oldest}, as in debian/pgversions')
    for name, pattern in (('CHANGELOG.md', r'^## (.*)'), ('debian/changelog', r'^(postgresql-bloomfilter .*)'),
                          ('rpm/postgresql-bloomfilter.spec', r'^(Version: .*)')):
        heading = first_match(name, pattern)
        version = re.search(r'\d[\d.]*', heading).group()
        check(f'{version}.'.startswith(f'{default}.'), name, f'begins with {version}, not {default}')
        if tag:
            check(version in (default, release), name, f'begins with {version}, not {release}')
            check('unreleased' not in heading.lower(), name, f'begins with {heading!r}')
    if tag:
        check(tag == f'v{release}', 'the tag', f'is {tag!r}, not v{release}')
        check(meta['release_status'] == 'stable', 'META.json', 'has another release_status than "stable"')


def compare_reasons():
    """Of several reasons the last one is told, so their order counts."""
    source = (TOP / 'src/join/plan/reason.c').read_text(encoding='utf-8')
    texts = re.findall(r'\[(PGBLOOM_REASON_\w+)\] = "((?:[^"\\]|\\.)*)"', source)
    header = (TOP / 'src/join/join.h').read_text(encoding='utf-8')
    check([name for name, _ in texts] == re.findall(r'^\t(PGBLOOM_REASON_\w+)', header, re.MULTILINE),
          'src/join/plan/reason.c', 'has other reasons than join.h, or in another order')
    texts = [text.replace('\\"', '"') for _, text in texts]
    page = (TOP / 'doc/JOIN_FILTERS.md').read_text(encoding='utf-8')
    table = re.search(r'^\| reason \|.*\n\|.*\n((?:\|.*\n)*)', page, re.MULTILINE).group(1)
    check(texts == re.findall(r'^\| (.*?) \|', table, re.MULTILINE), 'doc/JOIN_FILTERS.md',
          'has other reasons than src/join/plan/reason.c, or in another order')
    seen = ''.join((TOP / name).read_text(encoding='utf-8')
                   for name in ('expected/join_worth.out', 'test/tap/018_join_servers.pl'))
    for text in texts:
        check(text in seen, 'tests of join filters', f'none sees {text!r}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--tag', default='')
    tag = parser.parse_args().tag
    meta = json.loads((TOP / 'META.json').read_text(encoding='utf-8'))
    check_meta(meta)
    check_versions(meta, tag)
    compare_reasons()
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
