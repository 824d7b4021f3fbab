#!/usr/bin/env python3
"""gen_eformer_golden.py - writes tests/golden/eformer_examples.txt.

The output of examples/eformer_*.c, computed from the definitions of the formats
in double precision. Random inputs come from the second implementation of Philox
in gen_random_golden.py. Fails if a printed value, or a value to quantize, is so
close to a rounding boundary that the library's f32 arithmetic could round it
differently. Has no dependencies.

    tools/gen_eformer_golden.py > tests/golden/eformer_examples.txt
"""
from gen_random_golden import as_f32, block
from gen_random_golden import uniform as scaled

NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
       -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
       0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
       0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
       0.7229568362236023, 1.0]
MARGIN = 5e-7  # several ulp of values near 1


def uniform(seed, rows, columns, most=1.0):
    """The rows of lb_random_uniform, -most <= x < most."""
    x = [as_f32(scaled(block(seed, 0, i // 4)[i % 4], 32, 24, -most, most))
         for i in range(rows * columns)]
    return [x[r * columns:(r + 1) * columns] for r in range(rows)]


def int8(row):
    scale = max(abs(v) for v in row) / 127
    for v in row:
        assert abs(v / scale % 1 - 0.5) > 127 * MARGIN, v
    return [round(v / scale) * scale for v in row]


def nf4(row, size=64):
    out = []
    for at in range(0, len(row), size):
        part = row[at:at + size]
        absmax = max(abs(v) for v in part)
        for v in part:
            near = sorted(NF4, key=lambda level: abs(v / absmax - level))
            gap = abs(v / absmax - near[1]) - abs(v / absmax - near[0])
            assert gap > MARGIN, v
            out.append(near[0] * absmax)
    return out


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def text(v):
    assert abs(v * 1e4 % 1 - 0.5) > 1e4 * MARGIN * max(1, abs(v)), v
    return f"{v:.4f}"


def line(values):
    print(" ".join(text(v) for v in values))


def power():
    for row in uniform(1, 2, 4, 2.0):
        line(v * v for v in int8(row))


def linear():
    x, w, b = uniform(2, 2, 96), uniform(3, 3, 96), uniform(4, 1, 3)[0]
    # Half a byte or a byte for each value; an f32 per block (two in a row of 96
    # values) or per row.
    for name, quantize, size in (("nf4", nf4, 3 * (48 + 2 * 4)),
                                 ("int8", int8, 3 * (96 + 4))):
        print(f"{name}, {size} bytes")
        q = [quantize(row) for row in w]
        for row in x:
            line(dot(row, q[k]) + b[k] for k in range(3))


def train():
    x, y, w = uniform(5, 12, 4), uniform(6, 12, 8), uniform(7, 4, 8)
    for _ in range(6):
        q = [nf4(row, 8) for row in w]
        off = [[dot(x[r], [q[k][c] for k in range(4)]) - y[r][c]
                for c in range(8)] for r in range(12)]
        grad = [[sum(2 * x[r][k] * off[r][c] for r in range(12)) / 96
                 for c in range(8)] for k in range(4)]
        loss = sum(dot(row, row) for row in off) / 96
        most = max(abs(v) for row in grad for v in row)
        print(f"loss {text(loss)}, largest gradient {text(most)}")
        w = [[w[k][c] - 2 * grad[k][c] for c in range(8)] for k in range(4)]


def shard():
    w, x = uniform(8, 8, 32), uniform(10, 1, 32)[0]
    print("int8 (8,32), sharded; here (2,32)")
    line(dot(int8(row), x) for row in w)


def main():
    for example in (power, linear, train, shard):
        print(f"eformer_{example.__name__}")
        example()


if __name__ == "__main__":
    main()
