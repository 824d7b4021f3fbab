"""Exceptions: a class per status, the library's message, nothing left behind."""

import pytest

import lowbit


def test_classes():
    x = lowbit.zeros((2, 3))
    for error, also, call in [
        (lowbit.ShapeError, ValueError, lambda: x + lowbit.zeros((2, 4))),
        (lowbit.DtypeError, TypeError, lambda: lowbit.bitwise_and(x, x)),
        (lowbit.AxisError, IndexError, lambda: lowbit.sum(x, axis=5)),
        (lowbit.ArgumentError, ValueError, lambda: lowbit.quantize(x, "no")),
        (lowbit.SizeError, OverflowError, lambda: lowbit.zeros((2**62, 2**62))),
        (lowbit.OutOfMemoryError, MemoryError, lambda: lowbit.zeros((2**20, 2**30)) + 1),
    ]:
        with pytest.raises(error) as caught:
            call()
        assert isinstance(caught.value, also) and isinstance(caught.value, lowbit.Error)
        assert str(caught.value)
        assert (x + 1).shape == (2, 3)  # the context works again


def test_messages():
    with pytest.raises(lowbit.ShapeError, match=r"\(2,4\).*3 along axis 1"):
        lowbit.zeros((2, 3)) + lowbit.zeros((2, 4))


def test_array_arguments_of_any_kind():
    """Malformed arguments raise, for each function of the table."""
    from test_complete import table

    from lowbit import _lowbit

    values = [
        None,
        "a",
        1,
        -1,
        2.5,
        [],
        [1],
        [[1.0]],
        {},
        object(),
        (1, 2, 3),
        b"",
        2**70,
        ...,
    ]
    values += [
        lowbit.zeros((0, 3)),
        lowbit.quantize(lowbit.ones((2, 64))),
        float("nan"),
        True,
    ]
    for name, signature, kinds in table():
        function = getattr(_lowbit, name)
        for value in values:
            for other in (value, lowbit.ones((2, 3)), 1):
                args = [value, *[other] * (len(kinds) - 1)]
                count = len(
                    signature.split("*")[0].replace("/", "").strip(" ,").split(",")
                )
                try:
                    function(*args[:count])
                except (TypeError, ValueError, ArithmeticError, LookupError, MemoryError):
                    pass
                except (NotImplementedError, BufferError):
                    pass
    assert lowbit.context_info()["bytes_in_use"] < 10_000_000
