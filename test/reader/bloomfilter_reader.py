"""Bloom filters of the PostgreSQL extension bloomfilter, outside PostgreSQL.

Reads filters that a server exported as text or bytea, tests keys, and builds
filters that are byte for byte those of the extension.  It was written from
doc/FORMAT.md alone, whose sections the comments name, and shares no code
with the extension.  It needs Python 3.8 or later and the module xxhash.

An application that fetches a filter once and tests keys on its own side:

    from bloomfilter_reader import Filter

    text, = cursor.execute('SELECT f::text FROM seen').fetchone()
    seen = Filter.load(text)
    new = [url for url in urls if url not in seen]

One that builds a filter for the server:

    f = Filter('text', fpp=0.001)   # a filter that sizes itself
    f.update(['a', 'b'])
    f.compact()
    cursor.execute('INSERT INTO seen VALUES (%s::bloom)', [f.text()])

Keys are Python values: see key_bytes() for what a kind accepts.  add,
update, exclude, merge and compact change the filter and return nothing;
if one of them raises TooLarge, the filter may hold a part of the change.
"""

import base64
import datetime
import decimal
import functools
import ipaddress
import math
import operator
import struct

import xxhash

MASK = 2 ** 64 - 1
G = 0x9E3779B97F4A7C15
SPARSE, DENSE = 0, 1
MAX_BITS = 2 ** 32
MAX_LAYERS = 32
MAX_GENERATION = 23
MAX_KEYS = 2 ** 53
MAX_EXCEPTIONS = 4096
MULE_INTERNAL = 7                       # PostgreSQL's number of the encoding
MIN_FPP, MIN_LAYER_FPP, MAX_FPP = 1e-9, 1e-18, 0.5

HEADER = struct.Struct('<4s8BIIQdQ')            # section 2
ENTRY = struct.Struct('<IBBBBQdQ')              # section 3

KINDS = {name: code for code, name in enumerate(
    'text bytea integer float numeric boolean char oid uuid date time timetz '
    'timestamp timestamptz interval inet macaddr macaddr8 pg_lsn '
    'xid8'.split(), 1)}
KINDS.update(enum=64, foreign=65)
KIND_NAMES = {code: name for name, code in KINDS.items()}


WHITE_SPACE = dict.fromkeys(map(ord, ' \t\n\r'))


class FormatError(ValueError):
    """The bytes are not a valid image."""


class UnknownVersion(FormatError):
    """The image has a version or scheme that this module does not know."""


class TooLarge(ValueError):
    """The filter cannot hold what was asked for."""


# Section 4: from a key to its hash

DAY = 86400 * 10 ** 6
INFINITY = {'date': 31, 'timestamp': 63, 'timestamptz': 63}


def hash_bytes(data, seed=0):
    """The hash of a key's canonical bytes."""
    return xxhash.xxh3_64_intdigest(data, seed & MASK)


def i64(n):
    """n modulo 2**64 as 8 bytes, little-endian."""
    return (n & MASK).to_bytes(8, 'little')


def key_bytes(kind_name, key):
    """The canonical bytes of a key.

    text, enum: str (of char(n): without trailing spaces); bytes are taken
    as they are.  numeric: Decimal, int or str.  char: int, or bytes of
    length 1.  bytea, macaddr, macaddr8: bytes.  uuid: uuid.UUID.  date,
    time, timestamp: naive objects of datetime; timetz, timestamptz: aware
    ones; or numbers as FORMAT.md has them, two for timetz, or an infinite
    float.
    interval: timedelta, or the tuple (months, days, microseconds).  inet:
    objects of ipaddress, or str.  float: the number (of real: widened).
    foreign: what PostgreSQL's extended hash function returns.  The others:
    int.
    """
    if kind_name in ('text', 'enum'):
        return key.encode() if isinstance(key, str) else _raw(key)
    if kind_name in ('bytea', 'macaddr', 'macaddr8'):
        key = _raw(key)
        length = {'macaddr': 6, 'macaddr8': 8}.get(kind_name, len(key))
        if len(key) != length:
            raise ValueError('not a key of kind %s' % kind_name)
        return key
    if kind_name == 'float':
        return struct.pack('<d', math.nan if key != key else key + 0.0)
    if kind_name == 'numeric':
        return _numeric_text(key).encode()
    if kind_name == 'char' and isinstance(key, bytes):
        return i64(ord(key))
    if kind_name == 'uuid':
        return key.bytes
    if kind_name == 'timetz':
        if not isinstance(key, tuple):
            west = -key.utcoffset() // datetime.timedelta(seconds=1)
            key = _time_of_day(key), west
        return i64(key[0]) + i64(key[1])
    if kind_name == 'interval':
        if isinstance(key, datetime.timedelta):
            key = 0, key.days, key.seconds * 10 ** 6 + key.microseconds
        months, days, microseconds = key
        extra, microseconds = divmod(microseconds, DAY)
        return i64(30 * months + days + extra) + i64(microseconds)
    if kind_name == 'inet':
        key = ipaddress.ip_interface(str(key))
        return bytes([key.version, key.network.prefixlen]) + key.packed
    if kind_name in INFINITY and isinstance(key, float):
        if not math.isinf(key):
            raise ValueError('not a key of kind %s' % kind_name)
        end = 2 ** INFINITY[kind_name]
        return i64(end - 1 if key > 0 else -end)
    if kind_name not in KINDS:
        raise ValueError('unknown kind: %r' % (kind_name,))
    if isinstance(key, int):
        return i64(key)
    if kind_name == 'date':
        return i64(key.toordinal() - datetime.date(2000, 1, 1).toordinal())
    if kind_name == 'time' and key.tzinfo is None:
        return i64(_time_of_day(key))
    if kind_name in ('timestamp', 'timestamptz'):
        zone = datetime.timezone.utc if kind_name == 'timestamptz' else None
        since = key - datetime.datetime(2000, 1, 1, tzinfo=zone)
        return i64(since // datetime.timedelta(microseconds=1))
    raise TypeError('not a key of kind %s: %r' % (kind_name, key))


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


def shard(kind_name, key, shards):
    """The shard of a key, from 0 to shards - 1."""
    h = hash_bytes(key_bytes(kind_name, key))
    return hash_bytes(i64(h), 0x7368617264) * shards >> 64


# Section 7: the shape of a layer

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


def _load_rate(block_bits, k, unknown=1.0):
    """A function: the rate of a block by the number of its keys.

    unknown is the share of the variance that the block does have.
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
        return filled ** k + pairs * filled ** (k - 2) * variance * unknown

    return rate


def _rate(block_bits, k, c):
    load = block_bits / c
    return _mean(_load_rate(block_bits, k), int(load),
                 lambda i: load / (i + 1))


def _sigma(m, k, n):
    a = k * n / m
    return math.sqrt(m * math.exp(-a) * (1 - (1 + a) * math.exp(-a)))


class Shape:
    """What the rate p says about a layer: block_log2, k, x, c and d."""

    def __init__(self, p):
        def textbook(k):
            return -k / math.log1p(-p ** (1 / k))

        top = max(1, math.floor(-math.log2(p)))
        if textbook(top + 1) < textbook(top):
            top += 1
        ks = range(min(top + 1, 64), max(1, top - 7) - 1, -1)
        least = int(0.5 * textbook(top) * 1024)
        limit = int(1.05 * textbook(top) * 1024)
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
        self.most = self.capacity(MAX_BITS)

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

    def layer(self, n, left=MAX_BITS, generation=0):
        """An empty layer for n keys; None if it is too large."""
        if n > self.most or self.nblocks(n) * self.block_bits > left:
            return None
        return self.layer_of(self.nblocks(n), generation)

    def layer_of(self, nblocks, generation=0, bits=None):
        return Layer(nblocks, self.block_log2, self.k,
                     self.capacity(nblocks * self.block_bits), self.fpp,
                     generation, bits=bits)


shape = functools.lru_cache(maxsize=256)(Shape)


# Sections 3, 5 and 9: a layer

class Layer:
    """One layer: the fields of its entry in the directory, and bits."""

    def __init__(self, nblocks, block_log2, k, capacity, fpp, generation=0,
                 merged=False, bits=None):
        self.generation = generation
        self.merged = merged
        self.nblocks = nblocks
        self.block_log2 = block_log2
        self.k = k
        self.capacity = capacity
        self.fpp = fpp
        self.size = nblocks << block_log2           # m of section 8
        self.bits = bytearray(self.size // 8 if bits is None else bits)
        self.bits_set = _count(self.bits)
        self._one_key = -math.expm1(_log_u(1 << block_log2, k))     # 1 - u

    def shape(self):
        return (self.nblocks, self.block_log2, self.k, self.capacity,
                self.fpp, self.generation, self.merged)

    def positions(self, h):
        start = (h * self.nblocks >> 64) << self.block_log2
        h = h * pow(G, 64 * self.generation, MASK + 1)
        for _ in range(self.k):
            h = h * G & MASK
            yield start + (h >> 64 - self.block_log2)

    def positive(self, h):
        return all(self.bits[i >> 3] >> (i & 7) & 1
                   for i in self.positions(h))

    def missing(self, h):
        """The positions of h at which the bit is 0."""
        return {i for i in self.positions(h)
                if not self.bits[i >> 3] >> (i & 7) & 1}

    def set(self, h):
        for i in self.missing(h):
            self.bits[i >> 3] |= 1 << (i & 7)
            self.bits_set += 1

    @property
    def full(self):
        """How many bits may be set."""
        if self.merged:
            return 0
        if not hasattr(self, '_full'):
            log_rest = math.log1p(-self._one_key / self.nblocks)
            mean = self.size * -math.expm1(self.capacity * log_rest)
            spread = 4 * _sigma(self.size, self.k, self.capacity)
            self._full = min(self.size, math.floor(mean + spread))
        return self._full

    def takes(self, h):
        return self.bits_set + len(self.missing(h)) <= self.full

    def keys(self):
        """The number of keys, not rounded."""
        s = min(self.bits_set, self.size - 1)
        return (math.log1p(-s / self.size)
                / math.log1p(-self._one_key / self.nblocks))

    def accounts_for(self):
        """The same, with the keys that earlier layers kept from it."""
        if self.merged:
            return self.capacity
        n, fpp = self.keys(), self.fpp
        for _ in range(self.generation):
            fpp = min(2 * fpp, MAX_FPP)
            n /= 1 - fpp
        return n

    def rate(self):
        """The false-positive rate with the bits that are set."""
        if self.merged:
            return self.fpp
        if not self.bits_set:
            return 0.0
        n, others = max(1, round(self.keys())), self.nblocks - 1
        value = _load_rate(1 << self.block_log2, self.k,
                           others / self.nblocks)
        if not others:
            return value(n)
        return _mean(value, n // self.nblocks,
                     lambda i: (n - i) / (i + 1) / others)

    def folded(self):
        """This layer folded once: itself, or a smaller one."""
        form = shape(self.fpp)
        if self.merged or \
                (self.block_log2, self.k) != (form.block_log2, form.k):
            return self
        needed = form.needed(max(1, self.keys()))
        nblocks = max(1, math.ceil(needed / form.block_bits))
        while nblocks < self.nblocks and self.nblocks % nblocks:
            nblocks += 1
        if nblocks >= self.nblocks:
            return self
        step = form.block_bits // 8
        group = self.nblocks // nblocks * step
        bits = bytearray()
        for start in range(0, len(self.bits), group):
            block = 0
            for i in range(start, start + group, step):
                block |= int.from_bytes(self.bits[i:i + step], 'little')
            bits += block.to_bytes(step, 'little')
        return form.layer_of(nblocks, self.generation, bits)


def _count(bits):
    return bin(int.from_bytes(bits, 'little')).count('1')


def _combined(operation, a, b):
    both = operation(int.from_bytes(a, 'little'), int.from_bytes(b, 'little'))
    return bytearray(both.to_bytes(len(a), 'little'))


def _folded_fully(layer):
    while True:
        smaller = layer.folded()
        if smaller is layer:
            return layer
        layer = smaller


# Sections 1, 2, 6 and 8: a filter

class Filter:
    """A Bloom filter.

    kind is a name in KINDS; name is the type's, for enum and foreign;
    byte_order and encoding are for foreign; encoding MULE_INTERNAL also for
    text and enum.  expected 0 or None: the filter
    sizes itself.  Like the seed, hashes may be given signed or unsigned.
    fitted says that it is going to be made compact, as by bloom_agg without
    expected.  The attributes hashes (set), layers (list of Layer) and
    exceptions (set) are for reading.
    """

    def __init__(self, kind=None, fpp=0.01, expected=0, seed=0, name='',
                 byte_order=0, encoding=0, fitted=False):
        if not MIN_FPP <= fpp <= MAX_FPP:
            raise ValueError('fpp must be from 1e-9 to 0.5')
        if kind is not None and kind not in KINDS:
            raise ValueError('unknown kind: %r' % (kind,))
        if (kind in ('enum', 'foreign')) != bool(name) \
                or (kind == 'foreign') != (byte_order in (1, 2)):
            raise ValueError('name or byte_order does not go with the kind')
        if expected and expected < 0:
            raise ValueError('expected must not be negative')
        if expected and expected > shape(fpp).most:
            raise TooLarge('expected must be at most %d' % shape(fpp).most)
        self.kind = kind
        self.name = name
        self.byte_order = byte_order
        self.encoding = encoding
        self.fpp = fpp
        self.expected = expected or 0
        self.seed = seed & MASK
        self.fitted = fitted
        self.hashes = set()
        self.layers = []
        self.exceptions = set()
        self._has_keys = False          # is the kind recorded in the image?

    # Section 6: reading

    @classmethod
    def load(cls, image):
        """The filter with this image: bytes, or text in base64."""
        if isinstance(image, str):
            try:
                image = base64.b64decode(
                    image.translate(WHITE_SPACE), validate=True)
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
        (_, _, form, scheme, nlayers, code, namelen, byte_order, encoding,
         nhashes, nexceptions, seed, fpp, expected) = HEADER.unpack_from(image)
        if scheme != 1:
            raise UnknownVersion('unknown scheme %d' % scheme)
        rule(2, form in (SPARSE, DENSE))
        rule(3, MIN_FPP <= fpp <= MAX_FPP and expected <= 2 ** 32)
        rule(4, code <= 20 or code in (64, 65))
        rule(4, (namelen > 0) == (code >= 64))
        rule(5, byte_order in (1, 2) and encoding <= 34 if code == 65
             else byte_order == 0 and encoding in (
                 (0, MULE_INTERNAL) if code in (1, 64) else (0,)))
        at = 44 + -(-namelen // 8) * 8
        rule(6, at <= len(image))
        try:
            name = image[44:44 + namelen].decode()
        except UnicodeDecodeError:
            rule(6, False)
        rule(6, not any(c < ' ' or '\x7f' <= c < '\xa0' for c in name)
             and not any(image[44 + namelen:at]))
        if form == SPARSE:
            rule(7, nlayers == nexceptions == 0
                 and len(image) == at + 8 * nhashes)
        else:
            rule(8, nhashes == 0 and 1 <= nlayers <= MAX_LAYERS
                 and nexceptions <= MAX_EXCEPTIONS
                 and at + ENTRY.size * nlayers <= len(image))
        entries = []
        left = MAX_BITS
        for _ in range(nlayers):
            entry = ENTRY.unpack_from(image, at)
            nblocks, log2, k, generation, merged, capacity, rate, \
                bits_set = entry
            rule(9, 9 <= log2 <= 14 and 1 <= k <= 64 and nblocks >= 1)
            size = nblocks << log2
            left -= size
            rule(9, left >= 0 and generation <= MAX_GENERATION
                 and merged <= 1
                 and 1 <= capacity <= (MAX_KEYS if merged else size)
                 and MIN_LAYER_FPP <= rate <= (1 if merged else MAX_FPP)
                 and bits_set <= size)
            entries.append(entry)
            at += ENTRY.size
        if form == DENSE:
            rule(10, len(image)
                 == at + (MAX_BITS - left) // 8 + 8 * nexceptions)
        f = cls(None, fpp, 0, seed)
        f.expected = expected
        counted = []
        for nblocks, log2, k, generation, merged, capacity, rate, bits_set \
                in entries:
            end = at + (nblocks << log2) // 8
            f.layers.append(Layer(nblocks, log2, k, capacity, rate,
                                  generation, bool(merged), image[at:end]))
            counted.append(f.layers[-1].bits_set == bits_set)
            at = end
        words = struct.unpack_from('<%dQ' % (nhashes + nexceptions), image, at)
        ascending = all(a < b for a, b in zip(words, words[1:]))
        if form == SPARSE:
            rule(11, ascending)
            f.hashes = set(words)
        else:
            rule(12, all(counted))
            rule(13, ascending and all(f._positive(h) for h in words))
            f.exceptions = set(words)
        f.name = name
        f.kind = KIND_NAMES.get(code)
        f.byte_order, f.encoding = byte_order, encoding
        f._has_keys = code != 0
        return f

    # Sections 1 to 3: writing

    def image(self):
        """The bytes of the filter."""
        code, byte_order, encoding, name = self._kind() or (0, 0, 0, b'')
        words = sorted(self.exceptions if self.layers else self.hashes)
        parts = [
            HEADER.pack(b'BLMF', 1, DENSE if self.layers else SPARSE, 1,
                        len(self.layers), code, len(name), byte_order,
                        encoding, len(self.hashes), len(self.exceptions),
                        self.seed, self.fpp, self.expected),
            name, bytes(-len(name) % 8)]
        parts += [ENTRY.pack(layer.nblocks, layer.block_log2, layer.k,
                             layer.generation, layer.merged, layer.capacity,
                             layer.fpp, layer.bits_set)
                  for layer in self.layers]
        parts += [layer.bits for layer in self.layers]
        parts.append(struct.pack('<%dQ' % len(words), *words))
        return b''.join(parts)

    def text(self):
        """The image in base64."""
        return base64.b64encode(self.image()).decode()

    def _kind(self):
        """What the header says about the kind; None for kind 0."""
        if not self._has_keys:
            return None
        return (KINDS[self.kind], self.byte_order, self.encoding,
                self.name.encode())

    # Section 5: probing

    def hash(self, key):
        """The hash of a key of the filter's kind."""
        if self.kind is None:
            raise ValueError('the kind of the keys is not known')
        return hash_bytes(key_bytes(self.kind, key), self.seed)

    def __contains__(self, key):
        return self.contains_hash(self.hash(key))

    def contains_hash(self, h):
        h &= MASK
        if not self.layers:
            return h in self.hashes
        return h not in self.exceptions and self._positive(h)

    def _positive(self, h):
        return any(layer.positive(h) for layer in self.layers)

    # Section 8: building

    def add(self, key):
        """Add a key, as bloom_add does."""
        self.add_hash(self.hash(key))

    def add_hash(self, h):
        """Add a hash: of a key of the filter's kind, if that is known."""
        h &= MASK
        if self.kind is not None and not self._has_keys:
            self._normalize()
            self._has_keys = True
        if self.contains_hash(h):
            return
        if self.layers and (h in self.exceptions or not any(
                layer.takes(h) for layer in self.layers)):
            self._normalize()
        self._add(h)

    def update(self, keys):
        """Add keys, as bloom_add_all does, and bloom_agg to a new filter."""
        self._normalize()
        for key in keys:
            self._add(self.hash(key))
            self._has_keys = True

    def _add(self, h, coming=1):
        if not self.layers:
            self.hashes.add(h)
            self._check_list()
            return
        self.exceptions.discard(h)
        if self._positive(h):
            return
        for layer in reversed(self.layers):
            if layer.takes(h):
                break
        else:
            layer = self._append(coming)
        layer.set(h)

    def _check_list(self):
        """Turn dense if the list of hashes is too long."""
        form = shape(self.fpp)
        most = 2 ** 22
        if self.expected:
            most = 4 + form.nblocks(self.expected) * form.block_bits // 64
        if len(self.hashes) > most:
            if self.fitted and not self.expected:
                nblocks = 75
                while form.needed(6 * 2 ** 22) > nblocks * form.block_bits:
                    nblocks *= 2
                self.layers = [form.layer_of(nblocks)]
            else:
                self.layers = [form.layer(self.expected or 2 ** 24)]
            self._add_list(self._take_list())

    def _take_list(self):
        hashes, self.hashes = self.hashes, set()
        return hashes

    def _add_list(self, hashes):
        """Add hashes to the layers, in scattered order."""
        hashes = sorted(hashes)
        n = len(hashes)
        period = 1 << n.bit_length()
        i, coming = 0, n
        while coming:
            if i < n:
                self._add(hashes[i], coming)
                coming -= 1
            i = (1664525 * i + 1013904223) % period

    def _append(self, coming):
        """Append a layer for a hash that no other takes."""
        alone = [layer for layer in self.layers if not layer.merged]
        largest = max([1] + [layer.capacity for layer in alone])
        fpp = min([self.fpp] + [layer.fpp for layer in alone])
        form = shape(max(fpp / 2, MIN_LAYER_FPP))
        left = MAX_BITS - sum(layer.size for layer in self.layers)
        generation = min(MAX_GENERATION, 1 + max(
            layer.generation for layer in self.layers))
        layer = form.layer(max(self.expected, 2 * largest, coming), left,
                           generation)
        if not layer:
            n = math.floor(left / form.c * 125 / 128)
            if n > 0 and n >= largest // 8:
                layer = form.layer(n, left, generation)
        if not layer or len(self.layers) == MAX_LAYERS:
            raise TooLarge('the filter is full')
        self.layers.append(layer)
        return layer

    def exclude(self, key):
        """Record a key that is known to be a false positive."""
        self.exclude_hash(self.hash(key))

    def exclude_hash(self, h):
        h &= MASK
        if not self.contains_hash(h):
            return
        if not self.layers:
            raise ValueError('the key was added to the filter')
        self._normalize()
        self.exceptions.add(h)
        self._check_exceptions()

    def _check_exceptions(self):
        if len(self.exceptions) > MAX_EXCEPTIONS:
            raise TooLarge('more than %d exceptions' % MAX_EXCEPTIONS)

    def compact(self):
        """Give back room that the keys do not need."""
        self._normalize()
        if self.layers:
            before, self.layers = self.layers, []
            folded = [_folded_fully(layer) for layer in before]
            if folded == before:
                self.layers = before
                return
            for layer in folded:
                self._merge_layer(layer)
            self._sort_layers()
            if len(before) == 1 and self.expected:
                self.expected = folded[0].capacity
        elif self.hashes:
            n = len(self.hashes)
            form = shape(self.fpp)
            if n <= form.most and \
                    form.nblocks(n) * form.block_bits // 8 + 32 < 8 * n:
                self.layers = [form.layer(n)]
                for h in self._take_list():
                    self.layers[0].set(h)
                if self.expected:
                    self.expected = n

    def __or__(self, other):
        """The union of two filters."""
        if not isinstance(other, Filter):
            return NotImplemented

        def rank(f):
            image = f.image()
            return len(f.layers), len(image), image

        first, second = sorted((self, other), key=rank, reverse=True)
        result = first.merged_into_empty()
        result.merge(second)
        return result

    def __and__(self, other):
        """The intersection of two filters."""
        if not isinstance(other, Filter):
            return NotImplemented
        result = Filter(None, self.fpp, 0, self.seed)
        result._join(self)
        result._join(other)
        first, second = sorted((self, other), key=lambda f: bool(f.layers))
        if not first.layers:
            result.hashes = {h for h in first.hashes
                             if second.contains_hash(h)}
            result._check_list()
            return result
        if len(first.layers) > 1 or len(second.layers) > 1 or \
                first.layers[0].shape() != second.layers[0].shape():
            raise ValueError('the filters have different shapes')
        bits = _combined(operator.and_, first.layers[0].bits,
                         second.layers[0].bits)
        result.layers = [Layer(*first.layers[0].shape(), bits=bits)]
        result.exceptions = set(filter(
            result._positive, first.exceptions | second.exceptions))
        result._check_exceptions()
        return result

    def is_neutral(self):
        """Is this what bloom_empty() gives?"""
        return not (self.layers or self.hashes or self._has_keys
                    or self.expected or self.seed or self.fpp != 0.01)

    def merged_into_empty(self):
        """The same filter, with layers of equal shape merged."""
        result = Filter(None, self.fpp, 0, self.seed, fitted=self.fitted)
        result.merge(self)
        return result

    def _normalize(self):
        self.__dict__ = self.merged_into_empty().__dict__

    def _join(self, other):
        """Take over the parameters of another filter."""
        if self.seed != other.seed:
            raise ValueError('the filters have different seeds')
        if None not in (self._kind(), other._kind()) \
                and self._kind() != other._kind():
            raise ValueError('the filters have keys of different kinds')
        if not self._has_keys and (other._has_keys or self.kind is None):
            self.kind, self.name = other.kind, other.name
            self.byte_order = other.byte_order
            self.encoding = other.encoding
            self._has_keys = other._has_keys
        self.fpp = min(self.fpp, other.fpp)
        self.expected = min(max(self.expected, other.expected),
                            shape(self.fpp).most)

    def merge(self, other):
        """Merge other into this filter, which is under construction."""
        if self.is_neutral():
            self.fpp, self.expected = other.fpp, other.expected
            self.seed = other.seed
        if other.is_neutral() and (self.kind or not other.kind):
            return
        self._join(other)
        had_layers = bool(self.layers)
        if not other.layers:
            if self.layers:
                self._add_list(other.hashes)
            else:
                self.hashes |= other.hashes
                self._check_list()
            return
        self.exceptions = {
            h for h in self.exceptions | other.exceptions
            if not self.contains_hash(h) and not other.contains_hash(h)}
        self._check_exceptions()
        for layer in other.layers:
            self._merge_layer(layer)
        if len(self.layers) > MAX_LAYERS or \
                sum(layer.size for layer in self.layers) > MAX_BITS:
            raise TooLarge('the union has too many layers or bits')
        if had_layers:
            self._sort_layers()
        self._add_list(self._take_list())

    def _sort_layers(self):
        self.layers.sort(key=lambda a: (
            a.capacity, -a.fpp, a.nblocks, a.block_log2, a.k, a.generation,
            a.merged, a.bits_set, a.bits))

    def _merge_layer(self, layer):
        best = None
        for mine in self.layers:
            if mine.shape() != layer.shape():
                continue
            bits = _combined(operator.or_, mine.bits, layer.bits)
            count = _count(bits)
            gain = count - mine.bits_set
            if count <= max(mine.full, mine.bits_set, layer.bits_set) \
                    and (best is None or gain < best[0]):
                best = gain, mine, bits
        if best is None:
            self.layers.append(Layer(*layer.shape(), bits=layer.bits))
        else:
            best[1].bits = best[2]
            best[1].bits_set += best[0]

    # Section 9: what a filter tells about itself

    def cardinality(self):
        """About how many distinct keys were added."""
        if not self.layers:
            return len(self.hashes)
        return round(sum(layer.accounts_for() for layer in self.layers))

    def current_fpp(self):
        """The rate of false positives with the keys it has."""
        if not self.layers:
            return len(self.hashes) / 2 ** 64
        return -math.expm1(sum(math.log1p(-min(layer.rate(), 1 - 2 ** -53))
                               for layer in self.layers))
