"""Writes placement/golden.txt: what placement must answer on every machine, from an implementation that shares nothing
with it (whole numbers and decimals of 60 digits). Run it only when the rank changes on purpose: every cache moves then.

  python3 placement/golden.py >placement/golden.txt
"""

import random
import uuid
from decimal import Decimal, getcontext

getcontext().prec = 60
MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15


def mix64(x):
    x ^= x >> 27
    x = x * 0x3C79AC492BA7B653 & MASK
    x ^= x >> 33
    x = x * 0x1C69B3F74AC4AE35 & MASK
    return x ^ x >> 27


def hash_words(words):
    h = mix64(len(words) * STEP & MASK)
    for word in words:
        h = mix64((h ^ word) + STEP & MASK)
    return h


def hash_bytes(data):
    h = mix64(STEP)
    for i in range(0, len(data), 8):
        h = mix64((h ^ int.from_bytes(data[i : i + 8], "little")) + STEP & MASK)
    return mix64((h ^ len(data)) + STEP & MASK)


def exact_negative_log2(h):
    return -(Decimal(2 * (h >> 11) + 1) / Decimal(2**54)).ln() / Decimal(2).ln()


def negative_log2(h):
    """In units of 2^-56: the bits of log2 by squaring, as the header says."""
    x = 2 * (h >> 11) + 1
    exponent = x.bit_length() - 1
    mantissa, fraction = x << 63 - exponent, 0
    for _ in range(56):
        square = mantissa * mantissa
        two = square >> 127
        mantissa = square >> (64 if two else 63)
        fraction = fraction << 1 | two
    answer = (54 << 56) - (exponent << 56 | fraction)
    assert abs(Decimal(answer) / 2**56 - exact_negative_log2(h)) < Decimal(2) ** -54, hex(h)
    return answer


def main():
    rng = random.Random(2026)
    print("# Written by placement/golden.py.")
    print("# bytes HEX HASH")
    for size in (0, 1, 7, 8, 9, 16, 24, 33):
        data = rng.randbytes(size)
        print("bytes", data.hex() or "-", f"{hash_bytes(data):016x}")
    print("# log2 HASH NEGATIVE_LOG2")
    edges = [0, 1 << 11, 0xFFF << 11, MASK, MASK - (1 << 11), 1 << 63, (1 << 63) - 1, 1 << 62, 3 << 62]
    for h in edges + [rng.getrandbits(64) for _ in range(100)] + [MASK - rng.getrandbits(40) for _ in range(20)]:
        print("log2", f"{h:016x}", f"{negative_log2(h):016x}")
    print("# rank CATALOG TABLE SEGMENT IDENTITY:WEIGHT,... PLACES: owner first, as places in the list of members")
    for i in range(200):
        count = rng.choice((1, 2, 3, 4, 8, 50 if i % 20 == 0 else 5))
        weights = rng.choice(([16], [16, 16, 8], [1, 2, 4, 8, 64], [1, 65536], range(1, 129)))
        members = [(uuid.UUID(bytes=rng.randbytes(16)), rng.choice(weights)) for _ in range(count)]
        unit = [hash_bytes(rng.choice((b"lake", b"sales", b""))), rng.randrange(10**6), rng.choice((0, rng.getrandbits(40)))]
        key = hash_words(unit)
        scores = []
        for place, (identity, weight) in enumerate(members):
            h = mix64(hash_bytes(identity.bytes) ^ key)
            scores.append((exact_negative_log2(h) / weight, place))
        names = ",".join(f"{identity}:{weight}" for identity, weight in members)
        print("rank", *unit, names, ",".join(str(place) for _, place in sorted(scores)))


main()
