#!/usr/bin/env python3
"""What several files say: META.json against the PGXN Meta Spec 1.0 (https://pgxn.org/spec/), versions, and reasons.

PGXN rejects an upload that breaks its specification. The control file, debian/pgversions, the CHANGELOG and
debian/changelog name versions, too, and must agree. So must the reasons for which a join has no filter: the source, the
table of the documentation, in their order, and the tests, which see each of them.
"""
import json
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]

LICENSES = set('''agpl_3 apache_1_1 apache_2_0 artistic_1 artistic_2 bsd freebsd gfdl_1_2 gfdl_1_3 gpl_1 gpl_2 gpl_3
lgpl_2_1 lgpl_3_0 mit mozilla_1_0 mozilla_1_1 openssl perl_5 postgresql qpl_1_0 ssleay sun zlib open_source restricted
unrestricted unknown'''.split())
PHASES = {'configure', 'build', 'test', 'runtime', 'develop'}
RELATIONS = {'requires', 'recommends', 'suggests', 'conflicts'}
STATUSES = {'stable', 'testing', 'unstable'}

# Semantic Versioning 1.0.0, as the specification has it
VERSION = re.compile(r'(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([A-Za-z][-0-9A-Za-z]*|-[0-9A-Za-z][-.0-9A-Za-z]*)?')
TERM = re.compile(r'[^\s/\\\x00-\x1f\x7f]{2,}')
TAG = re.compile(r'[^/\\\x00-\x1f\x7f]{1,256}')
URL = re.compile(r'[A-Za-z][-+.A-Za-z0-9]*://[^/?#\s]+\S*')
CUSTOM = re.compile(r'[xX]_.+')

errors = []


def check(condition, where, text):
    if not condition:
        errors.append(f'{where}: {text}')


def is_string(value):
    return isinstance(value, str) and value != ''


def string(value, where):
    check(is_string(value), where, 'is not a string, or empty')


def matching(pattern, what):
    def check_value(value, where):
        check(isinstance(value, str) and pattern.fullmatch(value), where, f'{value!r} is no {what}')
    return check_value


version = matching(VERSION, 'version of three numbers')
term = matching(TERM, 'term')
tag = matching(TAG, 'tag')
url = matching(URL, 'URL')


def one_of(values):
    def check_value(value, where):
        check(isinstance(value, str) and value in values, where, f'{value!r} is none of {", ".join(sorted(values))}')
    return check_value


def some(check_value):
    """One, or a list of at least one."""
    def check_values(value, where):
        values = value if isinstance(value, list) else [value]
        check(values, where, 'is empty')
        for i, item in enumerate(values):
            check_value(item, f'{where}[{i}]' if isinstance(value, list) else where)
    return check_values


def version_range(value, where):
    """A minimum such as "15.0.0", a list such as ">= 1.2.0, != 1.5.0", or 0 for any."""
    if value == 0 and not isinstance(value, bool):
        return
    check(is_string(value), where, 'is no range of versions')
    for part in str(value).split(','):
        part = re.sub(r'^\s*(<=|>=|==|!=|<|>)?\s*', '', part).strip()
        check(part == '0' or VERSION.fullmatch(part), where, f'{part!r} is no version of three numbers')


def file(value, where):
    """A file of the distribution, below its top directory."""
    string(value, where)
    if is_string(value):
        path = pathlib.PurePosixPath(value)
        check(not path.is_absolute() and '..' not in path.parts, where, f'{value!r} leads out of the distribution')
        check((TOP / value).is_file(), where, f'there is no file {value!r}')


def mapping(fields, required=(), any_key=None, custom=True):
    """Keys that are known, keys that any_key checks, and custom keys, which begin with x_."""
    def check_mapping(value, where):
        if not isinstance(value, dict):
            errors.append(f'{where}: is no map')
            return
        for key in required:
            check(key in value, where, f'lacks {key!r}')
        check(value or not any_key, where, 'is empty')
        for key, item in value.items():
            inner = f'{where}.{key}' if where else key
            if key in fields:
                fields[key](item, inner)
            elif any_key:
                any_key[0](key, f'{inner} (key)')
                any_key[1](item, inner)
            else:
                check(custom and CUSTOM.fullmatch(key), inner, 'is not in the specification')
    return check_mapping


def licenses(value, where):
    if isinstance(value, dict):
        mapping({}, any_key=(string, url))(value, where)
    else:
        some(one_of(LICENSES))(value, where)


EXTENSION = mapping({'file': file, 'version': version, 'abstract': string, 'docfile': file},
                    required=('file', 'version'))
PREREQS = mapping({}, any_key=(one_of(PHASES), mapping({}, any_key=(
    one_of(RELATIONS), mapping({}, any_key=(term, version_range))))))
RESOURCES = mapping({
    'homepage': url,
    'bugtracker': mapping({'web': url, 'mailto': matching(re.compile(r'\S+@\S+'), 'mail address')}),
    'repository': mapping({'url': url, 'web': url, 'type': matching(re.compile(r'[a-z]+'), 'type in lower case')}),
    'license': some(url),
})
DISTRIBUTION = mapping({
    'name': term,
    'version': version,
    'abstract': string,
    'description': string,
    'maintainer': some(string),
    'license': licenses,
    'provides': mapping({}, any_key=(term, EXTENSION)),
    'meta-spec': mapping({'version': one_of({'1.0.0'}), 'url': url}, required=('version',)),
    'generated_by': string,
    'tags': some(tag),
    'no_index': mapping({'file': some(string), 'directory': some(string)}),
    'prereqs': PREREQS,
    'release_status': one_of(STATUSES),
    'resources': RESOURCES,
}, required=('name', 'version', 'abstract', 'maintainer', 'license', 'provides', 'meta-spec'))


def first_match(name, pattern):
    found = re.search(pattern, (TOP / name).read_text(encoding='utf-8'), re.MULTILINE)
    check(found, name, f'has nothing like {pattern!r}')
    return found.group(1) if found else None


def compare_with_files(meta):
    """The release is 1.0.0 for PGXN and 1.0 for PostgreSQL; fixes of the library alone are 1.0.1, and still 1.0."""
    default = first_match('bloomfilter.control', r"^default_version = '(.*)'$")
    extension = meta['provides']['bloomfilter']
    for where, value in ('version', meta['version']), ('provides.bloomfilter.version', extension['version']):
        check(value == default or value.startswith(f'{default}.'), where,
              f'{value!r} does not belong to default_version {default!r} of bloomfilter.control')
    check(extension['file'] == f'bloomfilter--{default}.sql', 'provides.bloomfilter.file',
          f'is not the script of version {default}')
    required = meta['prereqs']['runtime']['requires']['PostgreSQL']
    oldest = first_match('debian/pgversions', r'^(\d+)\+$')
    check(required == f'{oldest}.0.0', 'prereqs.runtime.requires.PostgreSQL',
          f'{required!r} is not {oldest}, as in debian/pgversions')
    changed = first_match('CHANGELOG.md', r'^## (\S+)')
    check(f'{changed}.'.startswith(f'{default}.'), 'CHANGELOG.md', f'begins with {changed}, not {default}')
    packaged = first_match('debian/changelog', r'\((\S+?)(?:-[^-]+)?\)')
    check(f'{packaged}.'.startswith(f'{default}.'), 'debian/changelog',
          f'begins with {packaged}, not {default}')


def compare_reasons():
    """Of several reasons the last one is told, so their order counts."""
    source = (TOP / 'src/join/reason.c').read_text(encoding='utf-8')
    texts = re.findall(r'\[(PGBLOOM_REASON_\w+)\] = "((?:[^"\\]|\\.)*)"', source)
    header = (TOP / 'src/join/join.h').read_text(encoding='utf-8')
    check([name for name, _ in texts] == re.findall(r'^\t(PGBLOOM_REASON_\w+)', header, re.MULTILINE),
          'src/join/reason.c', 'has other reasons than join.h, or in another order')
    texts = [text.replace('\\"', '"') for _, text in texts]
    page = (TOP / 'doc/JOIN_FILTERS.md').read_text(encoding='utf-8')
    table = re.search(r'^\| reason \|.*\n\|.*\n((?:\|.*\n)*)', page, re.MULTILINE).group(1)
    check(texts == re.findall(r'^\| (.*?) \|', table, re.MULTILINE), 'doc/JOIN_FILTERS.md',
          'has other reasons than src/join/reason.c, or in another order')
    seen = ''.join((TOP / name).read_text(encoding='utf-8')
                   for name in ('expected/join_worth.out', 'test/tap/018_join_servers.pl'))
    for text in texts:
        check(text in seen, 'tests of join filters', f'none sees {text!r}')


def main():
    try:
        meta = json.loads((TOP / 'META.json').read_text(encoding='utf-8'))
    except ValueError as error:
        sys.exit(f'META.json: {error}')
    DISTRIBUTION(meta, '')
    if not errors:
        compare_with_files(meta)
    compare_reasons()
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())
