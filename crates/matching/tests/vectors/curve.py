#!/usr/bin/env python3
"""Vectors for the hash to the group and for products: `python3 curve.py > curve.json`.

Written from RFC 9380 (edwards25519_XMD:SHA-512_ELL2_RO_) and RFC 7748, in affine coordinates and without a ladder, so that
it shares no formula with the code: the hash goes through the Edwards curve, products add points of B v^2 = u^3 + A u^2 + u
with B = 1 on the curve and B = 2, which is no square, on its twist.
"""
import hashlib
import json

P, A = 2**255 - 19, 486662
TAG = b"TACIT-V01-CS01-with-edwards25519_XMD:SHA-512_ELL2_RO_"


def inverse(x):
    return pow(x, P - 2, P)


def root(x):
    """The square root that is even, or none."""
    for r in (pow(x, (P + 3) // 8, P), pow(x, (P + 3) // 8, P) * pow(2, (P - 1) // 4, P) % P):
        if r * r % P == x % P:
            return r if r % 2 == 0 else P - r
    return None


def expand(message, length):
    """Section 5.3.1, with SHA-512."""
    tag = TAG + bytes([len(TAG)])
    first = hashlib.sha512(bytes(128) + message + length.to_bytes(2, "big") + b"\0" + tag).digest()
    last = hashlib.sha512(first + b"\1" + tag).digest()
    out, i = last, 2
    while len(out) < length:
        last = hashlib.sha512(bytes(a ^ b for a, b in zip(first, last)) + bytes([i]) + tag).digest()
        out, i = out + last, i + 1
    return out[:length]


def elligator(t):
    """Section 6.7.1 with Z = 2: a point of the Montgomery curve."""
    x1 = -A * inverse((1 + 2 * t * t) % P) % P
    for x, odd in ((x1, 1), ((-x1 - A) % P, 0)):
        y = root(x * (x * x + A * x + 1))
        if y is not None:
            return x, y if y % 2 == odd else (P - y) % P
    raise AssertionError("one of the two is a square")


D = -121665 * inverse(121666) % P
SCALE = root(-486664 % P)


def to_edwards(point):
    """Appendix D.1; the sign of the constant does not matter to u."""
    s, t = point
    if t == 0 or s == P - 1:
        return 0, 1
    return SCALE * s * inverse(t) % P, (s - 1) * inverse(s + 1) % P


def edwards_add(p, q):
    (x1, y1), (x2, y2) = p, q
    k = D * x1 * x2 * y1 * y2 % P
    return (x1 * y2 + x2 * y1) * inverse(1 + k) % P, (y1 * y2 + x1 * x2) * inverse(1 - k) % P


def hash_to_u(message):
    text = expand(message, 96)
    points = [to_edwards(elligator(int.from_bytes(text[i : i + 48], "big") % P)) for i in (0, 48)]
    total = edwards_add(*points)
    for _ in range(3):
        total = edwards_add(total, total)
    return (1 + total[1]) * inverse(1 - total[1]) % P


def add(p, q, b):
    if p is None or q is None:
        return q if p is None else p
    (x1, y1), (x2, y2) = p, q
    if x1 == x2:
        if (y1 + y2) % P == 0:
            return None
        slope = (3 * x1 * x1 + 2 * A * x1 + 1) * inverse(2 * b * y1)
    else:
        slope = (y2 - y1) * inverse(x2 - x1)
    x3 = (b * slope * slope - A - x1 - x2) % P
    return x3, (slope * (x1 - x3) - y1) % P


def product(key, u):
    """The u-coordinate of 8 s' times a point with this one, or none for the point at infinity and small order."""
    square = u * (u * u + A * u + 1) % P
    b = 1 if root(square) is not None else 2
    point, total = (u, root(square * inverse(b) % P)), None
    while key:
        if key & 1:
            total = add(total, point, b)
        point, key = add(point, point, b), key >> 1
    return None if total is None or total[0] == 0 else total[0]


def hex32(x):
    return x.to_bytes(32, "little").hex()


def key_of(seed):
    text = bytearray(hashlib.sha256(b"key %d" % seed).digest())
    text[31] &= 15
    return text.hex(), 8 * int.from_bytes(text, "little")


names = [bytes([97 + i % 26]) * (i * 7) for i in range(24)]
hashes = [{"name": name.hex(), "u": hex32(hash_to_u(name))} for name in names]
products = []
for i in range(48):
    text, key = key_of(i % 3)
    u = int.from_bytes(hashlib.sha256(b"u %d" % i).digest(), "little") % 2**255
    # Elements at the ends, and those of small order on curve and twist.
    u = [u, 0, 1, P - 1, 2, P - 2, 9][i - 41] if i > 41 else u
    if u < P:
        result = product(key, u)
        products.append({"key": text, "u": hex32(u), "product": None if result is None else hex32(result)})
print(json.dumps({"hashes": hashes, "products": products}, indent=1))
