"""Parameters of a matrix of which `make test` runs a part: one of each kind, so that a change that
breaks something is seen at once. `make slow` runs all."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def mostly_slow(values: Iterable[Any], fast: Callable[[Any], bool]) -> list[Any]:
    """Return parameters for all values; those that are not `fast` are marked `slow`. A value that
    is a tuple stands for several parameters.

    >>> [len(each.marks) for each in mostly_slow([1, 2, 3], lambda value: value == 2)]
    [1, 0, 1]
    """
    values = list(values)
    if not any(map(fast, values)):
        raise ValueError("none of the parameters is fast")
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=() if fast(value) else (pytest.mark.slow,),
        )
        for value in values
    ]


def each_nth(values: Sequence[Any], nth: int) -> list[Any]:
    """Return parameters for all values; each nth is fast, from the first on.

    >>> [each.values for each in each_nth("abcdef", 4) if not each.marks]
    [('a',), ('e',)]
    """
    return [
        pytest.param(value, marks=(pytest.mark.slow,) if at % nth else ())
        for at, value in enumerate(values)
    ]


def pairs(ones: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return parameters for each of the one with each of the other; fast are as few as have each of
    both.

    >>> [each.values for each in pairs("ab", "xyz") if not each.marks]
    [('a', 'x'), ('a', 'z'), ('b', 'y')]
    """
    count = max(len(ones), len(others))
    fast = {(at % len(ones), at % len(others)) for at in range(count)}
    return [
        pytest.param(one, other, marks=() if (i, j) in fast else (pytest.mark.slow,))
        for i, one in enumerate(ones)
        for j, other in enumerate(others)
    ]
