"""Bloom filters of the PostgreSQL extension bloomfilter, outside PostgreSQL.

Loads filters that were exported as text or bytea, tests keys, and builds
filters that are byte for byte those of the extension.  It follows
doc/FORMAT.md, whose sections the comments name, and shares no code with the
extension.  It needs Python 3.8 and python3-xxhash.

    >>> seen = Filter.load(text_from_the_server)
    >>> 'https://example.org/' in seen
    >>> mine = Filter('integer', fpp=0.001)
    >>> mine.update(range(1000))
    >>> mine.compact()
    >>> text_for_the_server = mine.text()

Keys are Python values: str for text and enum labels, int, float, bool,
Decimal for numeric, bytes, uuid.UUID, the types of datetime and ipaddress;
key_bytes() lists them.
"""
import base64
import datetime
import functools
import ipaddress
import math
import struct
import uuid
from decimal import Decimal

import xxhash

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
SHARD_SEED = 0x7368617264
MAX_BITS = 2**32
SLACK = 4
MAX_LAYERS = 32
MAX_EXCEPTIONS = 4096
MAX_ENCODING = 34
MAX_UNSIZED_HASHES = 2**22
FIRST_UNSIZED_LAYER = 2**24
HEADER = struct.Struct('<4s8BIIQdQ')
ENTRY = struct.Struct('<IBBHQdQ')

ENUM, FOREIGN = 64, 65
KINDS = dict(zip(
    'text bytea integer float numeric boolean char oid uuid date time timetz '
    'timestamp timestamptz interval inet macaddr macaddr8 pg_lsn xid8'.split(),
    range(1, 21)), enum=ENUM, foreign=FOREIGN)
KIND_NAMES = {code: name for name, code in KINDS.items()}


class FormatError(ValueError):
    """The bytes are not a filter (section 6)."""


class UnknownVersion(FormatError):
    """The bytes are a filter of a later version of the format."""


class TooLarge(ValueError):
    """The filter would exceed 512 MiB, 32 layers or 4096 exceptions."""


# --- Section 4: from a key to its hash --------------------------------------

def i64(number):
    return (number & MASK).to_bytes(8, 'little')


def microseconds(delta):
    return delta // datetime.timedelta(microseconds=1)


def count_since_2000(value, unit, epoch, bits):
    """Dates and timestamps; strings are 'infinity' and '-infinity'."""
    if value in ('infinity', '-infinity'):
        return -2**(bits - 1) if value[0] == '-' else 2**(bits - 1) - 1
    return value if isinstance(value, int) else (value - epoch) // unit


def time_of_day(value):
    """A time, or the microseconds since midnight."""
    if isinstance(value, int):
        return value
    return microseconds(datetime.timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second,
        microseconds=value.microsecond))


def float_bytes(value):
    if math.isnan(value):
        return bytes.fromhex('000000000000f87f')
    return struct.pack('<d', value if value != 0 else 0.0)


def numeric_bytes(value):
    value = Decimal(value)
    if not value.is_finite():
        return (b'NaN' if value.is_nan() else
                b'-Infinity' if value < 0 else b'Infinity')
    if value == 0:
        return b'0'
    digits = format(value, 'f')
    if '.' in digits:
        digits = digits.rstrip('0').rstrip('.')
    return digits.encode('ascii')


def timetz_bytes(value):
    """A time with tzinfo, or (microseconds, seconds west of Greenwich)."""
    if isinstance(value, tuple):
        return i64(value[0]) + i64(value[1])
    return (i64(time_of_day(value)) +
            i64(-microseconds(value.utcoffset()) // 1000000))


def interval_bytes(value):
    """(months, days, microseconds), or a timedelta."""
    if isinstance(value, datetime.timedelta):
        value = 0, 0, microseconds(value)
    months, days, rest = value
    more_days, rest = divmod(rest, 86400000000)
    return i64(30 * months + days + more_days) + i64(rest)


def inet_bytes(value):
    interface = ipaddress.ip_interface(value)
    return (bytes([interface.version, interface.network.prefixlen]) +
            interface.ip.packed)


def lsn_bytes(value):
    """A number, or its text like 16/B374D848."""
    if isinstance(value, str):
        high, low = value.split('/')
        value = int(high, 16) << 32 | int(low, 16)
    return i64(value)


DAY = datetime.timedelta(days=1)
MICROSECOND = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime(2000, 1, 1)
CANONICAL = {
    'text': lambda v: v.encode('utf-8'),
    'bytea': bytes,
    'integer': i64,
    'float': float_bytes,
    'numeric': numeric_bytes,
    'boolean': lambda v: i64(int(v)),
    'char': i64,
    'oid': i64,
    'uuid': lambda v: uuid.UUID(str(v)).bytes,
    'date': lambda v: i64(count_since_2000(v, DAY, EPOCH.date(), 32)),
    'time': lambda v: i64(time_of_day(v)),
    'timetz': timetz_bytes,
    'timestamp': lambda v: i64(count_since_2000(v, MICROSECOND, EPOCH, 64)),
    'timestamptz': lambda v: i64(count_since_2000(
        v, MICROSECOND, EPOCH.replace(tzinfo=datetime.timezone.utc), 64)),
    'interval': interval_bytes,
    'inet': inet_bytes,
    'macaddr': bytes,
    'macaddr8': bytes,
    'pg_lsn': lsn_bytes,
    'xid8': i64,
    'enum': lambda v: v.encode('utf-8'),
    # what PostgreSQL's extended hash function gives for key and seed
    'foreign': i64,
}


def key_bytes(kind, value):
    """The canonical bytes of a key."""
    return CANONICAL[kind](value)


def hash_bytes(data, seed=0):
    return xxhash.xxh3_64_intdigest(data, seed & MASK)


def shard(kind, value, shards):
    """Section 5: which of so many filters a key belongs to."""
    key_hash = hash_bytes(key_bytes(kind, value))
    return hash_bytes(i64(key_hash), SHARD_SEED) * shards >> 64


# --- Section 7: the shape of a layer ----------------------------------------

def blocked_rate(block_bits, k, bits_per_key):
    """The rate of a filter in blocks, the loads of which are Poisson's."""
    mean = block_bits / bits_per_key
    unset = (1 - 1 / block_bits)**k
    spread = 14 * math.sqrt(mean) + 60      # beyond it, nothing is left
    return math.fsum(
        math.exp(load * math.log(mean) - mean - math.lgamma(load + 1)) *
        (1 - unset**load)**k
        for load in range(max(0, int(mean - spread)), int(mean + spread)))


@functools.lru_cache(maxsize=None)
def design(fpp):
    """log2 of B, k and X, which is 1024 times the bits per key."""
    def textbook(k):
        return -k / math.log1p(-fpp**(1 / k))

    best_k = max(1, math.floor(-math.log2(fpp)))
    if textbook(best_k + 1) < textbook(best_k):
        best_k += 1
    limit = math.floor(1.05 * textbook(best_k) * 1024)
    for block_log2 in range(9, 15):
        best = None
        for k in range(max(1, best_k - 7), min(best_k + 1, 64) + 1):
            low, high = 1, 3 * limit
            while low < high:
                middle = (low + high) // 2
                if blocked_rate(2**block_log2, k, middle / 1024) <= fpp:
                    high = middle
                else:
                    low = middle + 1
            if best is None or low <= best[0]:
                best = low, k
        if best[0] <= limit:
            break
    return block_log2, best[1], best[0]


def deviation(m, k, n):
    """Standard deviation of the number of bits that n keys set in m."""
    a = k * n / m
    return math.sqrt(max(0, m * math.exp(-a) * (1 - (1 + a) * math.exp(-a))))


@functools.lru_cache(maxsize=None)
def slack(fpp):
    """What is reckoned per root of n keys for the deviation, in keys."""
    _, k, grid_bits = design(fpp)
    bits_per_key = grid_bits / 1024
    return SLACK * math.ceil(1024 * deviation(bits_per_key, k, 1) / (
        k * math.exp(-k / bits_per_key))) / 1024


def needed_bits(fpp, n):
    return (n + slack(fpp) * math.sqrt(n)) * design(fpp)[2] / 1024


@functools.lru_cache(maxsize=None)
def most_keys(fpp, bits=MAX_BITS):
    """The most keys that need no more than this many bits, at least one."""
    low, high = 1, bits
    while low < high:
        middle = (low + high + 1) // 2
        if needed_bits(fpp, middle) <= bits:
            low = middle
        else:
            high = middle - 1
    return low


@functools.lru_cache(maxsize=None)
def shape_for(fpp, n):
    """N, log2 of B, k, capacity and rate of the layer for n keys."""
    block_log2, k, _ = design(fpp)
    if needed_bits(fpp, n) > MAX_BITS:
        raise TooLarge('%d keys at a rate of %g' % (n, fpp))
    nblocks = max(1, math.ceil(needed_bits(fpp, n) / 2**block_log2))
    unit = 1
    while nblocks > 256 * unit:
        unit *= 2
    nblocks = -(-nblocks // unit) * unit
    return (nblocks, block_log2, k, most_keys(fpp, nblocks << block_log2),
            fpp)


def size_for(fpp, n):
    """The bits of the layer for n keys."""
    nblocks, block_log2, _, _, _ = shape_for(fpp, n)
    return nblocks << block_log2


class Layer:
    """N blocks of B bits."""

    def __init__(self, nblocks, block_log2, k, capacity, fpp, bits=None):
        self.shape = nblocks, block_log2, k, capacity, fpp
        self.nblocks, self.block_log2, self.k = nblocks, block_log2, k
        self.capacity, self.fpp = capacity, fpp
        self.size = nblocks << block_log2
        self.bits = bytearray(self.size // 8) if bits is None else bits
        self.bits_set = count_bits(self.bits)
        # the probability that one key leaves a given bit of its block unset
        self.unset = (1 - 1 / 2**block_log2)**k

    def positions(self, key_hash):
        """Section 5: the bits of a key, counted through the layer."""
        block = key_hash * self.nblocks >> 64
        x = key_hash
        for _ in range(self.k):
            x = x * GOLDEN & MASK
            yield (block << self.block_log2) + (x >> 64 - self.block_log2)

    def contains(self, key_hash):
        return all(self.bits[at >> 3] >> (at & 7) & 1
                   for at in self.positions(key_hash))

    def add(self, key_hash, full=MAX_BITS):
        """Add a hash unless more than full bits would then be set."""
        new = {at for at in self.positions(key_hash)
               if not self.bits[at >> 3] >> (at & 7) & 1}
        if self.bits_set + len(new) > full:
            return False
        for at in new:
            self.bits[at >> 3] |= 1 << (at & 7)
        self.bits_set += len(new)
        return True

    def full(self):
        """Section 8: the most bits that keys may set."""
        mean = -self.size * math.expm1(
            self.capacity * math.log1p(-(1 - self.unset) / self.nblocks))
        return min(self.size, math.floor(
            mean + SLACK * deviation(self.size, self.k, self.capacity)))

    def cardinality(self):
        """Section 9."""
        return (math.log1p(-min(self.bits_set, self.size - 1) / self.size) /
                math.log1p(-(1 - self.unset) / self.nblocks))

    def current_fpp(self):
        if self.bits_set == 0:
            return 0.0
        n = max(1, round(self.cardinality()))
        if self.nblocks == 1:
            return (1 - self.unset**n)**self.k
        mean = n / self.nblocks
        spread = 14 * math.sqrt(mean) + 60
        return math.fsum(
            math.exp(math.lgamma(n + 1) - math.lgamma(load + 1) -
                     math.lgamma(n - load + 1) -
                     load * math.log(self.nblocks) +
                     (n - load) * math.log1p(-1 / self.nblocks)) *
            (1 - self.unset**load)**self.k
            for load in range(max(0, int(mean - spread)),
                              min(n, int(mean + spread)) + 1))

    def folded(self):
        """Section 8: the smallest layer that holds what this one holds."""
        if design(self.fpp)[:2] != (self.block_log2, self.k):
            return self
        needed = needed_bits(self.fpp, max(self.cardinality(), 1))
        factor = next(f for f in range(self.nblocks, 0, -1)
                      if self.nblocks % f == 0 and
                      (f == 1 or self.size / f >= needed))
        if factor == 1:
            return self
        size = 1 << self.block_log2 - 3
        bits = bytearray()
        for start in range(0, len(self.bits), factor * size):
            block = 0
            for at in range(start, start + factor * size, size):
                block |= int.from_bytes(self.bits[at:at + size], 'little')
            bits += block.to_bytes(size, 'little')
        return Layer(self.nblocks // factor, self.block_log2, self.k,
                     most_keys(self.fpp, self.size // factor), self.fpp, bits)

    def order(self):
        return (self.capacity, -self.fpp, self.nblocks, self.block_log2,
                self.k, self.bits_set, bytes(self.bits))


def count_bits(data):
    return bin(int.from_bytes(data, 'little')).count('1')


def or_bits(x, y):
    return bytearray((int.from_bytes(x, 'little') |
                      int.from_bytes(y, 'little')).to_bytes(len(x), 'little'))


# --- The filter -------------------------------------------------------------

class Filter:
    """A filter: hashes or layers.  Without kind, the keys are unknown."""

    def __init__(self, kind=None, fpp=0.01, expected=0, seed=0, name='',
                 byte_order=0, encoding=0):
        self.kind = (KINDS[kind] if kind else 0, byte_order, encoding,
                     name.encode('utf-8'))
        self.fpp, self.expected, self.seed = fpp, expected or 0, seed & MASK
        self.hashes = set()
        self.layers = []
        self.exceptions = set()

    # --- Questions ---

    def hash(self, key):
        return hash_bytes(key_bytes(KIND_NAMES[self.kind[0]], key), self.seed)

    def __contains__(self, key):
        return self.contains_hash(self.hash(key))

    def contains_hash(self, key_hash):
        """Section 5.  A signed bigint of bloom_hash will do, too."""
        key_hash &= MASK
        if not self.layers:
            return key_hash in self.hashes
        return self.bits_say(key_hash) and key_hash not in self.exceptions

    def bits_say(self, key_hash):
        return any(layer.contains(key_hash) for layer in self.layers)

    def cardinality(self):
        """Section 9."""
        n = len(self.hashes)
        for layer in self.layers:
            arrived = max(0.5, math.prod(
                1 - other.current_fpp() for other in self.layers
                if other.fpp > layer.fpp and
                math.frexp(other.fpp)[0] == math.frexp(layer.fpp)[0]))
            n += layer.cardinality() / arrived
        return round(n)

    def current_fpp(self):
        if not self.layers:
            return len(self.hashes) / 2**64
        # 1 - (1 - a)(1 - b)... without losing the digits of small rates
        return -math.expm1(math.fsum(
            math.log1p(-min(layer.current_fpp(), 1 - 2**-53))
            for layer in self.layers))

    # --- Sections 1 to 3: the image ---

    def image(self):
        code, byte_order, encoding, name = self.kind
        parts = [HEADER.pack(
            b'BLMF', 1, 1 if self.layers else 0, 1, len(self.layers), code,
            len(name), byte_order, encoding, len(self.hashes),
            len(self.exceptions), self.seed, self.fpp, self.expected)]
        parts.append(name + bytes(-len(name) % 8))
        parts += [ENTRY.pack(layer.nblocks, layer.block_log2, layer.k, 0,
                             layer.capacity, layer.fpp, layer.bits_set)
                  for layer in self.layers]
        parts += [bytes(layer.bits) for layer in self.layers]
        parts += map(i64, sorted(self.hashes or self.exceptions))
        return b''.join(parts)

    def text(self):
        return base64.b64encode(self.image()).decode('ascii')

    @classmethod
    def load(cls, image):
        """Section 6: the filter of an image, from its bytes or its text."""
        def require(condition, what):
            if not condition:
                raise FormatError(what)

        if isinstance(image, str):
            try:
                image = base64.b64decode(image, validate=True)
            except ValueError as error:
                raise FormatError('base64: %s' % error)
        require(len(image) >= 5 and image[:4] == b'BLMF', 'magic')
        if image[4] != 1:
            raise UnknownVersion('version %d' % image[4])
        require(len(image) >= HEADER.size, 'shorter than the header')
        (_, _, form, scheme, nlayers, code, namelen, byte_order, encoding,
         nhashes, nexceptions, seed, fpp, expected) = HEADER.unpack_from(image)
        if scheme != 1:
            raise UnknownVersion('scheme %d' % scheme)
        require(form in (0, 1), 'form')
        require(1e-9 <= fpp <= 0.5, 'fpp')
        require(expected <= MAX_BITS, 'expected')
        require(code == 0 or code in KIND_NAMES, 'kind')
        named = code in (ENUM, FOREIGN)
        require((namelen > 0) == named, 'namelen')
        require(byte_order in (1, 2) if code == FOREIGN else
                byte_order == encoding == 0, 'byte order or encoding')
        require(encoding <= MAX_ENCODING, 'encoding')
        at = HEADER.size + namelen + -namelen % 8
        name = image[HEADER.size:HEADER.size + namelen]
        require(at <= len(image), 'shorter than the name')
        try:
            name = name.decode('utf-8')
        except UnicodeDecodeError:
            raise FormatError('name is not UTF-8')
        require(not any(c < ' ' or '\x7f' <= c < '\xa0' for c in name) and
                not any(image[HEADER.size + namelen:at]), 'name')
        result = cls(KIND_NAMES.get(code), fpp, expected, seed, name,
                     byte_order, encoding)
        require(expected <= most_keys(fpp), 'expected')

        if form == 0:
            require(nlayers == nexceptions == 0, 'sparse with layers')
            require(len(image) - at == 8 * nhashes, 'length')
            result.hashes = ascending(image[at:])
            return result

        require(nhashes == 0, 'dense with hashes')
        require(1 <= nlayers <= MAX_LAYERS, 'number of layers')
        require(nexceptions <= MAX_EXCEPTIONS, 'number of exceptions')
        bits_at = at + ENTRY.size * nlayers
        require(bits_at <= len(image), 'shorter than the directory')
        total = 0
        entries = list(ENTRY.iter_unpack(image[at:bits_at]))
        for nblocks, block_log2, k, reserved, capacity, rate, set_ in entries:
            require(9 <= block_log2 <= 14, 'block size')
            size = nblocks << block_log2
            total += size
            require(1 <= k <= 64, 'k')
            require(nblocks >= 1 and total <= MAX_BITS, 'nblocks')
            require(reserved == 0, 'reserved')
            require(1 <= capacity <= size, 'capacity')
            require(1e-18 <= rate <= 0.5, 'rate of a layer')
            require(set_ <= size, 'bits_set')
        require(bits_at + total // 8 + 8 * nexceptions == len(image), 'length')
        for nblocks, block_log2, k, _, capacity, rate, set_ in entries:
            end = bits_at + (nblocks << block_log2 - 3)
            layer = Layer(nblocks, block_log2, k, capacity, rate,
                          bytearray(image[bits_at:end]))
            require(layer.bits_set == set_, 'bits_set')
            result.layers.append(layer)
            bits_at = end
        result.exceptions = ascending(image[bits_at:])
        require(all(map(result.bits_say, result.exceptions)), 'exception')
        return result

    # --- Section 8: building ---

    def add(self, key):
        self.add_hash(self.hash(key))

    def update(self, keys):
        for key in keys:
            self.add(key)

    def add_hash(self, key_hash):
        self.add_hashes({key_hash & MASK})

    def add_hashes(self, hashes):
        self.hashes |= hashes
        if self.layers:
            self.move_hashes()
            return
        limit = MAX_UNSIZED_HASHES
        if self.expected:
            limit = 4 + size_for(self.fpp, self.expected) // 64
        if len(self.hashes) > limit:
            self.layers.append(Layer(*shape_for(
                self.fpp, self.expected or FIRST_UNSIZED_LAYER)))
            self.move_hashes()

    def move_hashes(self):
        hashes, self.hashes = sorted(self.hashes), set()
        n = len(hashes)
        step = GOLDEN * n >> 64
        while math.gcd(step, n) > 1:
            step += 1
        for i in range(n):
            self.add_to_layers(hashes[i * step % n], n - i)

    def add_to_layers(self, key_hash, coming):
        self.exceptions.discard(key_hash)
        if self.bits_say(key_hash):
            return
        for layer in reversed(self.layers):
            if layer.add(key_hash, layer.full()):
                return
        self.append(self.successor(coming))
        self.layers[-1].add(key_hash)

    def append(self, layer):
        if (len(self.layers) == MAX_LAYERS or layer.size +
                sum(other.size for other in self.layers) > MAX_BITS):
            raise TooLarge('layers')
        self.layers.append(layer)

    def successor(self, coming):
        largest = max(layer.capacity for layer in self.layers)
        fpp = min(self.fpp, min(layer.fpp for layer in self.layers))
        left = MAX_BITS - sum(layer.size for layer in self.layers)

        def fits(rate, n):
            return (needed_bits(rate, n) <= MAX_BITS and
                    size_for(rate, n) <= left)

        if self.expected > largest and fits(self.fpp, self.expected):
            return Layer(*shape_for(self.fpp, self.expected))
        fpp = max(fpp / 2, 1e-18)
        n = max(2 * largest, coming)
        if not fits(fpp, n):
            n = math.floor(left / (design(fpp)[2] / 1024) * 125 / 128)
            if n == 0 or n < largest // 8:
                raise TooLarge('no room for another layer')
        return Layer(*shape_for(fpp, n))

    def exclude(self, key):
        """Record that a key is a false positive."""
        self.exclude_hash(self.hash(key))

    def exclude_hash(self, key_hash):
        if not self.layers and key_hash in self.hashes:
            raise ValueError('the key was added')
        if self.contains_hash(key_hash):
            self.become(self.merged_into_empty())
            self.exceptions.add(key_hash)
            if len(self.exceptions) > MAX_EXCEPTIONS:
                raise TooLarge('exceptions')

    def compact(self):
        """Make it the smallest filter that keeps the rate asked for.

        What bloom_agg without expected does at its end.
        """
        self.become(self.merged_into_empty())
        if self.layers:
            folded = [layer.folded() for layer in self.layers]
            if self.expected and len(folded) == 1 and folded != self.layers:
                self.expected = folded[0].capacity
            self.layers = folded
        elif self.hashes:
            n = len(self.hashes)
            if size_for(self.fpp, n) // 8 + 32 < 8 * n:
                if self.expected:
                    self.expected = n
                layer = Layer(*shape_for(self.fpp, n))
                for key_hash in self.hashes:
                    layer.add(key_hash)
                self.layers, self.hashes = [layer], set()

    def become(self, other):
        self.__dict__ = other.__dict__

    def empty(self):
        """An empty filter with the same header."""
        result = Filter(fpp=self.fpp, expected=self.expected, seed=self.seed)
        result.kind = self.kind
        return result

    def merged_into_empty(self):
        result = self.empty()
        result.merge(self)
        return result

    def __or__(self, other):
        """The union, whichever of them comes first."""
        first, second = sorted(
            (self, other), reverse=True, key=lambda f: (
                len(f.layers), len(f.image()), f.image()))
        result = first.merged_into_empty()
        result.merge(second)
        return result

    def merge(self, other):
        if self.seed != other.seed:
            raise ValueError('different seeds')
        if self.kind[0] == 0:
            self.kind = other.kind
        elif other.kind[0] != 0 and self.kind != other.kind:
            raise ValueError('keys of different kinds')
        self.fpp = min(self.fpp, other.fpp)
        self.expected = min(max(self.expected, other.expected),
                            most_keys(self.fpp))

        self.add_hashes(other.hashes)
        if other.layers:
            self.exceptions = {
                key_hash for key_hash in self.exceptions | other.exceptions
                if not self.contains_hash(key_hash) and
                not other.contains_hash(key_hash)}
            if len(self.exceptions) > MAX_EXCEPTIONS:
                raise TooLarge('exceptions')
            for layer in other.layers:
                self.merge_layer(layer)
            self.layers.sort(key=Layer.order)
            self.move_hashes()

    def merge_layer(self, other):
        best = None
        for layer in self.layers:
            if layer.shape != other.shape:
                continue
            bits = or_bits(layer.bits, other.bits)
            count = count_bits(bits)
            if count > max(layer.full(), layer.bits_set,
                           other.bits_set):
                continue
            gain = count - layer.bits_set
            if best is None or gain < best[0]:
                best = gain, layer, bits
        if best is None:
            self.append(Layer(*other.shape, bytearray(other.bits)))
        else:
            gain, layer, layer.bits = best
            layer.bits_set += gain


def ascending(data):
    """The set of a list of hashes, which has to be strictly ascending."""
    hashes = [value for value, in struct.iter_unpack('<Q', data)]
    if any(x >= y for x, y in zip(hashes, hashes[1:])):
        raise FormatError('hashes are not ascending')
    return set(hashes)
