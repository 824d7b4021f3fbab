#!/usr/bin/env python3
"""gen_mathf_coefficients.py - the polynomials of src/kernels/mathf.c.

Each is a minimax fit (Remez exchange in 50 digits) of a function with a weight
that makes the error relative to the final result. Coefficients are rounded to
their format from the lowest power up, and the higher ones are fitted again to
compensate. tanh has tables of values and a quotient through three points instead.
Prints C arrays and the error of each, without the rounding errors of the
evaluation. Needs mpmath; takes about half a minute.
"""
import struct

import mpmath as mp

mp.mp.dps = 50
GRID = 400


def f32(x):
    return mp.mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def f64(x):
    return mp.mpf(float(x))


def c_hex(x, suffix=""):
    mantissa, exponent = float(x).hex().split("p")
    return mantissa.rstrip("0").rstrip(".") + "p" + exponent + suffix


def remez(f, w, powers, lo, hi):
    """Coefficients of x^p, p in powers, that minimize max |w (f - sum)|."""
    n = len(powers)
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    ref = [mid - half * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / (n + 1))
           for k in range(n + 1)]
    grid = [mid - half * mp.cos(mp.pi * k / GRID) for k in range(GRID + 1)]
    table = [(x, f(x), w(x)) for x in grid]
    for _ in range(30):
        a, b = mp.matrix(n + 1), mp.matrix(n + 1, 1)
        for i, x in enumerate(ref):
            for j, p in enumerate(powers):
                a[i, j] = x ** p
            a[i, n] = (-1) ** i / w(x)
            b[i] = f(x)
        c = mp.lu_solve(a, b)
        level = abs(c[n])
        err = [wx * (fx - sum(c[j] * x ** p for j, p in enumerate(powers)))
               for x, fx, wx in table]
        ref, worst = exchange(grid, err, n + 1)
        if worst <= level * (1 + mp.mpf(10) ** -4):
            break
    return [c[j] for j in range(n)], worst


def exchange(grid, err, want):
    """`want` grid points at which the extrema alternate."""
    peaks = []
    for x, e in zip(grid, err):
        if peaks and (peaks[-1][1] < 0) == (e < 0):
            if abs(e) > abs(peaks[-1][1]):
                peaks[-1] = (x, e)
        else:
            peaks.append((x, e))
    worst = max(abs(e) for _, e in peaks)
    while len(peaks) > want:
        peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
    if len(peaks) < want:
        raise ValueError("too few extrema: lower the degree")
    return [x for x, _ in peaks], worst


def fit(name, what, f, w, n, lo, hi, rnd=f32, first=0):
    lo, hi = mp.mpf(lo), mp.mpf(hi)
    powers = list(range(first, first + n))
    fixed = []
    for k in range(n):
        rest = lambda x: f(x) - sum(c * x ** p for c, p in zip(fixed, powers))
        c, _ = remez(rest, w, powers[k:], lo, hi)
        fixed.append(rnd(c[0]))
    xs = [lo + (hi - lo) * k / 2000 for k in range(2001)]
    left = max(abs(w(x) * (f(x) - sum(c * x ** p
                                      for c, p in zip(fixed, powers))))
               for x in xs)
    kind = "float" if rnd is f32 else "double"
    print(f"/* {what}\n * on [{mp.nstr(lo, 6)}, {mp.nstr(hi, 6)}], "
          f"error {mp.nstr(left, 3)} = 2^{mp.nstr(mp.log(left, 2), 4)} */")
    print(f"static const {kind} {name}[{n}] = {{")
    for c in fixed:
        print(f"    {c_hex(c, 'f' if rnd is f32 else '')},")
    print("};\n")


def limit(f, at0):
    """f by its series near 0, where it is 0/0 and cancels."""
    def g(x):
        if x == 0:
            return at0
        with mp.workdps(120):
            return f(x)
    return g


def c_table(name, values):
    """In the order of the bits above the 22 lowest ones of floats, modulo 16."""
    first = 0xf5  # of the floats from 3/64 on, which share a piece with those below
    rows = [values[(k - first) % 16] for k in range(16)]
    print(f"static const float {name}[16] = {{")
    for x in rows:
        print(f"    {c_hex(f32(x), 'f')},")
    print("};")


def near_f32(f, lo, hi):
    """The f32 next to the middle whose f is an f32, but for 2^-36 of itself."""
    mid = f32((lo + hi) / 2)
    ulp = mp.ldexp(1, int(mp.floor(mp.log(mid, 2))) - 23)
    for k in range(int((hi - lo) / ulp / 40)):
        for x in (mid + k * ulp, mid - k * ulp):
            if abs(f(x) - f32(f(x))) < mp.ldexp(f(x), -36):
                return x
    raise ValueError("no such f32")


def tanh():
    """tanh(c + t) = T + S p / (q + T p), where c is a point of x's piece, T its
    tanh, S = 1 - T^2, and tanh(t) = p / q."""
    edges = [mp.mpf(m) / 2 * mp.mpf(2) ** e for e in range(-4, 3) for m in (2, 3)]
    pieces = list(zip(edges, edges[1:] + [mp.mpf(8)]))
    # 0 for the first one; in the last one, where T is just below 1, its inverse
    at = [mp.mpf(0)] + [near_f32(mp.tanh, lo, hi) for lo, hi in pieces]
    at.append(f32(mp.atanh(1 - mp.mpf(2) ** -24)))
    print("/* c, tanh(c) and 1 - tanh(c)^2 */")
    c_table("TANH_AT", at)
    c_table("TANH", [mp.tanh(c) for c in at])
    c_table("TANH_SLOPE", [1 - mp.tanh(c) ** 2 for c in at])
    # t (1 + p z) / (1 + q1 z + q2 z^2), z = t^2, is exact at three t
    rows, right = mp.matrix(3, 3), mp.matrix(3, 1)
    for i, t in enumerate((mp.mpf(1) / 4, mp.mpf(1) / 2, mp.mpf(1))):
        z, f = t ** 2, mp.tanh(t) / t
        rows[i, 0], rows[i, 1], rows[i, 2] = z, -f * z, -f * z ** 2
        right[i] = f - 1
    p, q1, q2 = [f32(c) for c in mp.lu_solve(rows, right)]
    worst = mp.mpf(0)
    for (lo, hi), c in zip([(mp.mpf(0), edges[0])] + pieces, at):
        for k in range(1, 201):
            x = lo + (hi - lo) * k / 200
            t, T, z = x - c, mp.tanh(c), (x - c) ** 2
            got = t * (1 + p * z) / (1 + q1 * z + q2 * z ** 2)
            y = T + (1 - T ** 2) * got / (1 + T * got)
            worst = max(worst, abs(y / mp.tanh(x) - 1))
    print(f"/* p, q1, q2, error {mp.nstr(worst, 3)} = "
          f"2^{mp.nstr(mp.log(worst, 2), 4)} */")
    print(", ".join(c_hex(c, "f") for c in (p, q1, q2)) + "\n")


def main():
    ln2 = mp.log(2)
    fit("EXP", "(e^r - 1 - r) / r^2",
        limit(lambda r: (mp.exp(r) - 1 - r) / r ** 2, mp.mpf(1) / 2),
        lambda r: r ** 2 / mp.exp(r) + mp.mpf(10) ** -12, 5,
        -ln2 / 2 * mp.mpf("1.0001"), ln2 / 2 * mp.mpf("1.0001"))
    fit("ERF_NEAR", "erf(x)/x - 1, of z = x^2",
        limit(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
              2 / mp.sqrt(mp.pi) - 1),
        limit(lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
              mp.sqrt(mp.pi) / 2), 7, 0, 1)
    fit("ERF_FAR", "-log(erfc(x))", lambda x: -mp.log(mp.erfc(x)),
        lambda x: mp.erfc(x) / mp.erf(x), 7, 1, 4)
    tanh()
    # With s = f/(2 + f): log(1 + f) = 2 atanh(s) = 2s + s R, R = z * fit.
    smax = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
    atanh = limit(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z,
                  mp.mpf(2) / 3)
    share = limit(lambda z: z * mp.sqrt(z) / mp.atanh(mp.sqrt(z)) / 2
                  + mp.mpf(10) ** -22, mp.mpf(10) ** -22)
    what = "(2 atanh(s)/s - 2) / z, z = s^2"
    fit("LOG", what, atanh, share, 3, 0, smax ** 2)
    fit("LOGD", what, atanh, share, 7, 0, smax ** 2, f64)
    hi = mp.floor(ln2 * 2 ** 15) / 2 ** 15
    print(f"/* ln2 in f32: {c_hex(hi, 'f')} + {c_hex(f32(ln2 - hi), 'f')}, "
          f"k * high exact for |k| < 2^9 */")
    hi = mp.floor(ln2 * 2 ** 32) / 2 ** 32
    print(f"/* ln2 in f64: {c_hex(hi)} + {c_hex(f64(ln2 - hi))}, "
          f"k * high exact for |k| < 2^21 */")


main()
