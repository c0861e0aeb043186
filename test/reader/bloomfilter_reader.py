"""Bloom filters of the PostgreSQL extension bloomfilter, outside PostgreSQL.

Reads every filter that a server exports as text or bytea, probes it, tells
its rate and cardinality, and builds filters of hashes and of one layer with
the bytes that the extension gives them.  Filters of several layers can be
read, but not built.  The module is written from doc/FORMAT.md alone, whose
sections the comments name, and shares no code with the extension.  It needs
Python 3.8 or later and the module xxhash (python3-xxhash in Debian).

An application that fetches a filter once and probes keys on its own side:

    from bloomfilter_reader import Filter

    text, = cursor.execute('SELECT f::text FROM seen').fetchone()
    seen = Filter.load(text)
    new = [url for url in urls if url not in seen]

An application that builds a filter for the server:

    f = Filter('text', fpp=0.001)
    f.update(['a', 'b'])
    f.size_to_keys()                # as bloom_agg without expected
    cursor.execute('INSERT INTO seen VALUES (%s::bloom)', [f.text()])

An application that hashes keys itself, so that the server does not see them:

    cursor.execute('SELECT bloom_contains_hash(f, %s) FROM weak',
                   [key_hash('text', password, seed)])

Keys are Python values: see key_bytes() for what a key type accepts.
"""

import base64
import datetime
import decimal
import functools
import ipaddress
import math
import struct

try:
    import xxhash
except ImportError as error:
    raise ImportError('bloomfilter_reader needs the module xxhash: install '
                      'python3-xxhash (Debian, Ubuntu), or xxhash by pip'
                      ) from error

MASK = 2 ** 64 - 1
G = 0x9E3779B97F4A7C15
SPARSE, DENSE = 0, 1
MAX_BITS = 2 ** 32
MAX_LIST = 2 ** 26 + 4
MAX_LAYERS = 1024
MAX_GENERATION = 23
MAX_EXACT = 128                         # of bloom_agg without expected
MAX_HASHES = 2 ** 22                    # of a filter without expected
MIN_FPP, MIN_LAYER_FPP, MAX_FPP = 1e-9, 1e-18, 0.5
MIN_LIST_FPP = 2.0 ** -126

HEADER = struct.Struct('<4s8BIIQdQ')            # section 2
LIST_FPP = struct.Struct('<f')
ENTRY = struct.Struct('<IBBBBIIdQ')             # section 3

KEY_TYPES = {name: code for code, name in enumerate(
    'text bytea integer float numeric boolean char oid uuid date time timetz '
    'timestamp timestamptz interval inet macaddr macaddr8 pg_lsn '
    'xid8'.split(), 1)}
KEY_TYPES.update(enum=64, opclass=65)
KEY_TYPE_NAMES = {code: name for name, code in KEY_TYPES.items()}

WHITE_SPACE = dict.fromkeys(map(ord, ' \t\n\r'))


class FormatError(ValueError):
    """The bytes are not a valid image."""


class UnknownVersion(FormatError):
    """The image has a version or scheme that this module does not know."""


class TooLarge(ValueError):
    """The keys do not fit into one layer, or into what the format allows."""


# Section 4: from a key to its hash

DAY = 86400 * 10 ** 6
INFINITY = {'date': 31, 'timestamp': 63, 'timestamptz': 63}


def hash_bytes(data, seed=0):
    """The hash of a key's canonical bytes."""
    return xxhash.xxh3_64_intdigest(data, seed & MASK)


def i64(n):
    """n modulo 2**64 as 8 bytes, little-endian."""
    return (n & MASK).to_bytes(8, 'little')


def key_bytes(key_type, key):
    """The canonical bytes of a key.

    text, enum: str, or bytes that are hashed without a conversion to UTF-8.
    numeric: Decimal, int or str.  char: int, or bytes of length 1.  bytea,
    macaddr, macaddr8: bytes.  uuid: uuid.UUID.  date, time, timestamp: naive
    objects of datetime; timetz, timestamptz: aware ones; or numbers as
    FORMAT.md has them, two for timetz; date, timestamp, timestamptz also an
    infinite float.  interval: timedelta, or the tuple (months, days,
    microseconds).  inet: objects of ipaddress, or str.  float: the number (of
    real: widened).  opclass: array_number(), jsonb_number(), or what the type's
    extended hash function returns.  The others: int.

    None is no key, as NULL is none: a TypeError, like any other value that is
    not of the key type.
    """
    try:
        return _key_bytes(key_type, key)
    except (TypeError, AttributeError) as error:
        raise TypeError('not a key of type %s: %r, of type %s' % (
            key_type, key, type(key).__name__)) from error


def key_hash(key_type, key, seed=0):
    """The hash of a key as a bigint, from -2**63 on, as bloom_hash has it."""
    number = hash_bytes(key_bytes(key_type, key), seed)
    return number - (number >> 63 << 64)


def _key_bytes(key_type, key):
    if key_type in ('text', 'enum'):
        raw = key.encode() if isinstance(key, str) else _raw(key)
        return raw.rstrip(b' ')
    if key_type in ('bytea', 'macaddr', 'macaddr8'):
        key = _raw(key)
        length = {'macaddr': 6, 'macaddr8': 8}.get(key_type, len(key))
        if len(key) != length:
            raise ValueError('not a key of type %s' % key_type)
        return key
    if key_type == 'float':
        return struct.pack('<d', math.nan if key != key else key + 0.0)
    if key_type == 'numeric':
        return _numeric_text(key).encode()
    if key_type == 'char' and isinstance(key, bytes):
        return i64(ord(key))
    if key_type == 'uuid':
        return key.bytes
    if key_type == 'timetz':
        if not isinstance(key, tuple):
            west = -key.utcoffset() // datetime.timedelta(seconds=1)
            key = _time_of_day(key), west
        return i64(key[0]) + i64(key[1])
    if key_type == 'interval':
        if isinstance(key, datetime.timedelta):
            key = 0, key.days, key.seconds * 10 ** 6 + key.microseconds
        months, days, microseconds = key
        extra, microseconds = divmod(microseconds, DAY)
        return i64(30 * months + days + extra) + i64(microseconds)
    if key_type == 'inet':
        key = ipaddress.ip_interface(str(key))
        return bytes([key.version, key.network.prefixlen]) + key.packed
    if key_type in INFINITY and isinstance(key, float):
        if not math.isinf(key):
            raise ValueError('not a key of type %s' % key_type)
        end = 2 ** INFINITY[key_type]
        return i64(end - 1 if key > 0 else -end)
    if key_type not in KEY_TYPES:
        raise ValueError('unknown key type: %r' % (key_type,))
    if isinstance(key, int) and -2**63 <= key < 2**64:
        return i64(key)
    if key_type == 'date':
        return i64(key.toordinal() - datetime.date(2000, 1, 1).toordinal())
    if key_type == 'time' and key.tzinfo is None:
        return i64(_time_of_day(key))
    if key_type in ('timestamp', 'timestamptz'):
        zone = datetime.timezone.utc if key_type == 'timestamptz' else None
        since = key - datetime.datetime(2000, 1, 1, tzinfo=zone)
        return i64(since // datetime.timedelta(microseconds=1))
    raise TypeError('no such form of a key')


def list_number(numbers, seed):
    """The number of a list of numbers."""
    number = 1
    for start in range(0, len(numbers) or 1, 15):
        part = [number] + numbers[start:start + 15]
        number = hash_bytes(b''.join(map(i64, part)), seed)
    return number


def array_number(key_type, elements, seed):
    """The key for an array; key_type is that of its elements.

    text: str, or bytes in the encoding of the database; of char(n) without
    trailing spaces.  opclass: the numbers of the elements.
    """
    def number(key):
        if key is None:
            return 0
        if key_type == 'opclass':
            return key
        if key_type == 'text':
            return _string_hash(key, seed)
        return hash_bytes(key_bytes(key_type, key), seed)

    return list_number([number(key) for key in elements], seed)


def jsonb_number(value, seed, encoding='utf-8'):
    """The key for a jsonb value: None, bool, int, Decimal, str, list or dict,
    as json.loads(text, parse_float=decimal.Decimal) makes them."""
    numbers = []

    def add_string(string):
        numbers.extend((ord('"'), _string_hash(string.encode(encoding), seed)))

    def add(value):
        if value is None:
            numbers.append(ord('n'))
        elif isinstance(value, bool):
            numbers.append(ord('t' if value else 'f'))
        elif isinstance(value, str):
            add_string(value)
        elif isinstance(value, list):
            numbers.append(ord('['))
            for element in value:
                add(element)
            numbers.append(ord(']'))
        elif isinstance(value, dict):
            numbers.append(ord('{'))
            for key in sorted(value, key=lambda key: (
                    len(key.encode(encoding)), key.encode(encoding))):
                add_string(key)
                add(value[key])
            numbers.append(ord('}'))
        else:
            numbers.extend((
                ord('#'), hash_bytes(key_bytes('numeric', value), seed)))

    add(value)
    return list_number(numbers, seed)


def _string_hash(string, seed):
    raw = string.encode() if isinstance(string, str) else _raw(string)
    return hash_bytes(raw, seed)


def _raw(key):
    return bytes(memoryview(key))


def _time_of_day(t):
    seconds = (t.hour * 60 + t.minute) * 60 + t.second
    return seconds * 10 ** 6 + t.microsecond


def _numeric_text(key):
    if isinstance(key, float):
        raise TypeError('a numeric is a Decimal, int or str')
    key = decimal.Decimal(key)
    if key.is_nan():
        return 'NaN'
    if key.is_infinite():
        return '-Infinity' if key < 0 else 'Infinity'
    if not key:
        return '0'
    text = format(key, 'f')
    return text.rstrip('0').rstrip('.') if '.' in text else text


def shard(key_type, key, shards):
    """The shard of a key, from 0 to shards - 1."""
    h = hash_bytes(key_bytes(key_type, key))
    return hash_bytes(i64(h), 0x7368617264) * shards >> 64


# Section 7: layer parameters

def _mean(value, mode, up):
    """The mean of value(i) over a distribution, summed from its mode on.

    up(i) is the probability of i + 1 divided by that of i.
    """
    weights = weight = 1.0
    total = term = value(mode)
    i = mode
    while True:
        weight *= up(i)
        i += 1
        last, term = term, weight * value(i)
        weights += weight
        total += term
        if weight <= 1e-18 * weights and term <= min(last, 1e-18 * total):
            break
    weight, i = 1.0, mode
    while i > 0 and weight > 1e-18 * weights:
        i -= 1
        weight /= up(i)
        weights += weight
        total += weight * value(i)
    return total / weights


def _log_u(block_bits, k):
    return k * math.log1p(-1 / block_bits)


def _load_rate(block_bits, k, spread=1.0):
    """A function: the rate of a block by the number of its keys.

    spread is the share of the variance in hit that counts.
    """
    log_u = _log_u(block_bits, k)
    log_v = k * math.log1p(-2 / block_bits)
    pairs = k * (k - 1) / 2

    def rate(i):
        u, v = math.exp(i * log_u), math.exp(i * log_v)
        filled = -math.expm1(i * log_u)
        if k == 1 or not i:
            return filled
        variance = u / block_bits + (1 - 1 / block_bits) * v - u * u
        return filled ** k + pairs * filled ** (k - 2) * variance * spread

    return rate


def _rate(block_bits, k, c):
    load = block_bits / c
    return _mean(_load_rate(block_bits, k), int(load),
                 lambda i: load / (i + 1))


def _sigma(m, k, n):
    a = k * n / m
    return math.sqrt(m * math.exp(-a) * (1 - (1 + a) * math.exp(-a)))


class LayerParameters:
    """What the rate p determines: block_log2, k, x, c, d and max_keys."""

    def __init__(self, p):
        def standard(k):
            return -k / math.log1p(-p ** (1 / k))

        top = max(1, math.floor(-math.log2(p)))
        if standard(top + 1) < standard(top):
            top += 1
        ks = range(min(top + 1, 64), max(1, top - 7) - 1, -1)
        least = int(0.5 * standard(top) * 1024)
        limit = int(1.05 * standard(top) * 1024)
        self.fpp = p
        self.block_log2 = 9
        while not self._find(ks, least, limit):
            if self.block_log2 < 14:
                self.block_log2 += 1
            else:
                limit *= 2
        self.block_bits = 1 << self.block_log2
        self.c = self.x / 1024
        self.d = 4 / 1024 * math.ceil(
            1024 * _sigma(self.c, self.k, 1)
            / (self.k * math.exp(-self.k / self.c)))
        self.max_keys = self.capacity(MAX_BITS)

    def _find(self, ks, low, high):
        """Set x and k, if there is an x that is at most high."""
        found = False
        for k in ks:
            if _rate(1 << self.block_log2, k, high / 1024) > self.fpp:
                continue
            below, good = low, high
            while good - below > 1:
                x = (below + good) // 2
                if _rate(1 << self.block_log2, k, x / 1024) > self.fpp:
                    below = x
                else:
                    good = x
            self.x, self.k, high, found = good, k, good - 1, True
        return found

    def needed(self, n):
        """The bits that n keys need."""
        return (n + self.d * math.sqrt(n)) * self.c

    def nblocks(self, n):
        blocks = max(1, math.ceil(self.needed(n) / self.block_bits))
        s = 0
        while blocks > 256 << s:
            s += 1
        return -(-blocks >> s) << s

    def capacity(self, bits):
        """The number of keys that so many bits are made for."""
        root = (math.sqrt(self.d ** 2 + 4 * bits / self.c) - self.d) / 2
        n = max(1, int(root * root))
        while self.needed(n + 1) <= bits:
            n += 1
        while n > 1 and self.needed(n) > bits:
            n -= 1
        return n

    def layer(self, n):
        """An empty layer for n keys."""
        if n > self.max_keys:
            raise TooLarge('a layer has at most %d keys' % self.max_keys)
        nblocks = self.nblocks(n)
        return Layer(nblocks, self.block_log2, self.k,
                     self.capacity(nblocks * self.block_bits), self.fpp)


layer_parameters = functools.lru_cache(maxsize=256)(LayerParameters)


# Sections 3, 5 and 9: a layer

class Layer:
    """One layer: the fields of its directory entry, and its bits."""

    def __init__(self, nblocks, block_log2, k, capacity, fpp, generation=0,
                 bits=None, bits_cut=0):
        self.nblocks = nblocks
        self.block_log2 = block_log2
        self.k = k
        self.capacity = capacity
        self.fpp = fpp
        self.generation = generation
        self.bits_cut = bits_cut
        self.size = nblocks << block_log2           # m of section 9
        self.bits = bytearray(self.size // 8 if bits is None else bits)
        self.bits_set = bin(int.from_bytes(self.bits, 'little')).count('1')
        self._factor = pow(G, 64 * generation, MASK + 1)
        self._one_key = -math.expm1(_log_u(1 << block_log2, k))     # 1 - u

    def geometry(self):
        return (self.nblocks, self.block_log2, self.k, self.capacity,
                self.fpp, self.generation)

    def positions(self, h):
        start = (h * self.nblocks >> 64) << self.block_log2
        h *= self._factor
        for _ in range(self.k):
            h = h * G & MASK
            yield start + (h >> 64 - self.block_log2)

    def contains_hash(self, h):
        return all(self.bits[i >> 3] >> (i & 7) & 1
                   for i in self.positions(h))

    def set(self, h):
        for i in self.positions(h):
            self.bits_set += ~self.bits[i >> 3] >> (i & 7) & 1
            self.bits[i >> 3] |= 1 << (i & 7)

    def full(self):
        """How many bits may be set, section 8."""
        log_rest = math.log1p(-self._one_key / self.nblocks)
        mean = self.size * -math.expm1(self.capacity * log_rest)
        room = 4 * _sigma(self.size, self.k, self.capacity)
        return min(self.size, math.floor(mean + room))

    def keys(self, bits_cut=0):
        """The estimated number of keys in the layer, not rounded."""
        s = min(self.bits_set + bits_cut, self.size - 1)
        return (math.log1p(-s / self.size)
                / math.log1p(-self._one_key / self.nblocks))

    def added_keys(self):
        """The same, corrected for the false positives of earlier layers."""
        n, fpp = self.keys(), self.fpp
        for _ in range(self.generation):
            fpp = min(2 * fpp, MAX_FPP)
            n /= 1 - fpp
        return n

    def rate(self):
        """The false-positive rate with the bits that are set."""
        if not self.bits_set:
            return 0.0
        cut = min(self.bits_cut, self.size - self.bits_set)
        n, others = max(1, round(self.keys(cut))), self.nblocks - 1
        value = _load_rate(1 << self.block_log2, self.k,
                           others / self.nblocks)
        if not others:
            return value(n)
        return _mean(value, n // self.nblocks,
                     lambda i: (n - i) / (i + 1) / others)


# Sections 1, 2, 6 and 8: a filter

class Filter:
    """A Bloom filter.

    key_type is a name in KEY_TYPES, or None if it is not known.  name is that
    of the type, for enum and opclass; byte_order and encoding are for opclass.
    expected 0 or None: the filter is sized by size_to_keys().  Like the seed, hashes may be given
    signed or unsigned.  The attributes hashes (set) and layers (list of
    Layer) are for reading.
    """

    def __init__(self, key_type=None, fpp=0.01, expected=0, seed=0, name='',
                 byte_order=0, encoding=0):
        if not MIN_FPP <= fpp <= MAX_FPP:
            raise ValueError('fpp must be from 1e-9 to 0.5')
        if key_type is not None and key_type not in KEY_TYPES:
            raise ValueError('unknown key type: %r' % (key_type,))
        if (key_type in ('enum', 'opclass')) != bool(name) \
                or (key_type == 'opclass') != (byte_order in (1, 2)):
            raise ValueError('name or byte_order does not match the key type')
        if expected and expected < 0:
            raise ValueError('expected must not be negative')
        if expected and expected > layer_parameters(fpp).max_keys:
            raise TooLarge('expected must be at most %d'
                           % layer_parameters(fpp).max_keys)
        self.key_type = key_type
        self.name = name
        self.byte_order = byte_order
        self.encoding = encoding
        self.fpp = fpp
        self.expected = expected or 0
        self.seed = seed & MASK
        self.list_fpp = 0.0
        self.hashes = set()
        self.layers = []

    # Section 6: reading

    @classmethod
    def load(cls, image):
        """The filter with this image: bytes, or text as the server reads."""
        if isinstance(image, str):
            image = image.translate(WHITE_SPACE)
            try:
                image = (bytes.fromhex(image[2:]) if image.startswith('\\x')
                         else base64.b64decode(image, validate=True))
            except ValueError as error:
                raise FormatError('not base64') from error
        image = bytes(image)

        def rule(number, valid):
            if not valid:
                raise FormatError('not a valid image: rule %d' % number)

        rule(1, len(image) >= 5 and image[:4] == b'BLMF')
        if image[4] != 1:
            raise UnknownVersion('unknown version %d' % image[4])
        rule(2, len(image) >= 44)
        (_, _, form, scheme, flags, code, namelen, byte_order, encoding,
         nhashes, nlayers, seed, fpp, expected) = HEADER.unpack_from(image)
        if scheme != 1:
            raise UnknownVersion('unknown scheme %d' % scheme)
        rule(2, form in (SPARSE, DENSE) and flags == 0)
        rule(3, MIN_FPP <= fpp <= MAX_FPP and expected <= 2 ** 32)
        rule(4, code <= 20 or code in (64, 65))
        rule(4, (namelen > 0) == (code >= 64))
        rule(5, byte_order in (1, 2) and encoding <= 34 if code == 65
             else byte_order == encoding == 0)
        at = 44 + -(-namelen // 8) * 8
        rule(6, at <= len(image))
        try:
            name = image[44:44 + namelen].decode()
        except UnicodeDecodeError:
            rule(6, False)
        rule(6, not any(c < ' ' or '\x7f' <= c < '\xa0' for c in name)
             and not any(image[44 + namelen:at]))
        list_fpp, = LIST_FPP.unpack_from(image, 16 if form == SPARSE else 12)
        rule(7, LIST_FPP.pack(list_fpp) == bytes(4)
             or MIN_LIST_FPP <= list_fpp <= 1)
        if form == SPARSE:
            nlayers = 0
            rule(7, nhashes <= MAX_LIST and len(image) == at + 8 * nhashes)
        else:
            rule(8, 1 <= nlayers <= MAX_LAYERS
                 and at + ENTRY.size * nlayers <= len(image))
        entries = []
        left = MAX_BITS
        for _ in range(nlayers):
            entry = ENTRY.unpack_from(image, at)
            nblocks, log2, k, generation, flags, capacity, cut, rate, \
                bits_set = entry
            rule(9, 9 <= log2 <= 14 and 1 <= k <= 64 and nblocks >= 1)
            size = nblocks << log2
            left -= size
            rule(9, left >= 0 and generation <= MAX_GENERATION
                 and flags == 0 and 1 <= capacity <= size
                 and MIN_LAYER_FPP <= rate <= MAX_FPP
                 and bits_set <= size and cut <= size - bits_set)
            entries.append(entry)
            at += ENTRY.size
        if form == DENSE:
            rule(10, len(image) == at + (MAX_BITS - left) // 8)
        f = cls(None, fpp, 0, seed)
        f.key_type, f.name = KEY_TYPE_NAMES.get(code), name
        f.byte_order, f.encoding = byte_order, encoding
        f.expected = expected
        f.list_fpp = list_fpp
        rule(13, expected <= layer_parameters(fpp).max_keys)
        for entry in entries:
            nblocks, log2, k, generation, _, capacity, cut, rate, _ = entry
            end = at + (nblocks << log2) // 8
            f.layers.append(Layer(nblocks, log2, k, capacity, rate,
                                  generation, image[at:end], cut))
            at = end
        if form == SPARSE:
            words = struct.unpack_from('<%dQ' % nhashes, image, at)
            rule(11, all(a < b for a, b in zip(words, words[1:])))
            f.hashes = set(words)
        else:
            rule(12, all(layer.bits_set == entry[-1]
                         for layer, entry in zip(f.layers, entries)))
        return f

    # Sections 1 to 3: writing

    def image(self):
        """The bytes of the filter."""
        name = self.name.encode()
        list_fpp, = struct.unpack('<I', LIST_FPP.pack(self.list_fpp))
        counts = ((list_fpp, len(self.layers)) if self.layers
                  else (len(self.hashes), list_fpp))
        parts = [
            HEADER.pack(b'BLMF', 1, DENSE if self.layers else SPARSE, 1, 0,
                        KEY_TYPES.get(self.key_type, 0), len(name),
                        self.byte_order, self.encoding, *counts,
                        self.seed, self.fpp, self.expected),
            name, bytes(-len(name) % 8)]
        parts += [ENTRY.pack(layer.nblocks, layer.block_log2, layer.k,
                             layer.generation, 0, layer.capacity,
                             min(layer.bits_cut, layer.size - layer.bits_set),
                             layer.fpp, layer.bits_set)
                  for layer in self.layers]
        parts += [layer.bits for layer in self.layers]
        parts.append(struct.pack('<%dQ' % len(self.hashes),
                                 *sorted(self.hashes)))
        return b''.join(parts)

    def text(self):
        """The image in base64."""
        return base64.b64encode(self.image()).decode()

    # Section 5: probing

    def hash(self, key):
        """The hash of a key of the filter's key type."""
        if self.key_type is None:
            raise ValueError('the key type is not known')
        return hash_bytes(key_bytes(self.key_type, key), self.seed)

    def __contains__(self, key):
        return self.contains_hash(self.hash(key))

    def contains_hash(self, h):
        h &= MASK
        if not self.layers:
            return h in self.hashes
        return any(layer.contains_hash(h) for layer in self.layers)

    # Section 8: building

    def add(self, key):
        """Add a key."""
        self.add_hash(self.hash(key))

    def update(self, keys):
        """Add several keys."""
        for key in keys:
            self.add(key)

    def add_hash(self, h):
        """Add the hash of a key."""
        h &= MASK
        if self.contains_hash(h):
            return
        if not self.layers:
            self.hashes.add(h)
            if self.expected:
                self._convert(self.expected)
            elif len(self.hashes) > MAX_HASHES:
                raise TooLarge('more than %d keys without expected'
                               % MAX_HASHES)
            return
        layer = self.layers[0]
        if len(self.layers) > 1:
            raise TooLarge('a filter of several layers cannot be extended')
        new = {i for i in layer.positions(h)
               if not layer.bits[i >> 3] >> (i & 7) & 1}
        if layer.bits_set + len(new) > layer.full():
            raise TooLarge('more keys than the layer is made for')
        layer.set(h)

    def size_to_keys(self, exact=MAX_EXACT):
        """Make a list of hashes dense if a layer for its keys is smaller.

        This is what bloom_agg without expected does at its end for more than
        128 keys, and bloom_compact for any number: exact=0.
        """
        n = len(self.hashes)
        if n > exact and self._convert(n) and self.expected:
            self.expected = n

    def _convert(self, n):
        """Make the list dense if it is larger than a layer for n keys."""
        parameters = layer_parameters(self.fpp)
        size = parameters.nblocks(n) * parameters.block_bits
        if len(self.hashes) <= 4 + size // 64:
            return False
        self.layers = [parameters.layer(n)]
        for h in self.hashes:
            self.layers[0].set(h)
        self.hashes = set()
        return True

    # Section 9: what a filter tells about itself

    def cardinality(self):
        """About how many distinct keys were added."""
        if not self.layers:
            return len(self.hashes)
        runs = []
        for layer in self.layers:
            if runs and runs[-1][0].geometry() == layer.geometry():
                runs[-1].append(layer)
            else:
                runs.append([layer])
        return round(sum(self._distinct(run) for run in runs))

    def _distinct(self, layers):
        """Distinct keys of layers of one geometry."""
        keys = [layer.added_keys() for layer in layers]
        if len(layers) == 1:
            return sum(keys)
        bits = 0
        for layer in layers:
            bits |= int.from_bytes(layer.bits, 'little')
        union = Layer(*layers[0].geometry(),
                      bits.to_bytes(layers[0].size // 8, 'little'))
        if union.size - union.bits_set >= 1000:
            return min(max([union.added_keys()] + keys), sum(keys))
        half = len(layers) // 2
        return self._distinct(layers[:half]) + self._distinct(layers[half:])

    def current_fpp(self):
        """The rate of false positives with the keys it has."""
        if not self.layers:
            return min(1.0, self.list_fpp + len(self.hashes) / 2 ** 64)
        rates = [self.list_fpp] + [layer.rate() for layer in self.layers]
        return -math.expm1(sum(math.log1p(-min(rate, 1 - 2 ** -53))
                               for rate in rates))
