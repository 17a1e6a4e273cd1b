"""How values of tables are judged: each once, in an array or, where rows are few, one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.filter.backends.sources import FEW, SPARSE, KeyedValues, Lookup
from kafkascope.analyzer.filter.getters import Values

KEYS = st.lists(st.integers(0, 5) | st.integers(0, 1 << 23), max_size=30)


@given(st.lists(KEYS, max_size=5))
def test_every_row_is_judged_by_its_value(pieces: list[list[int]]) -> None:
    lookup = Lookup(lambda values: values[0] % 3 == 0)
    for keys in pieces:
        found = lookup(KeyedValues(np.array(keys, dtype=np.int64), lambda key: (key,)))
        assert found.tolist() == [key % 3 == 0 for key in keys]


def test_few_rows_of_a_large_table_are_not_remembered() -> None:
    judged: list[Values] = []

    def judge(values: Values) -> bool:
        judged.append(values)
        return True

    for top, again in ((FEW - 1, 1), (10_000, 2), (2_000_000, 2)):
        judged.clear()
        lookup = Lookup(judge)
        for _ in range(2):
            lookup(KeyedValues(np.array([top, top]), lambda key: (key,)))
        assert len(judged) == again
    judged.clear()
    lookup = Lookup(judge)
    rows = np.arange(1_000) * (SPARSE - 1)
    for _ in range(2):
        lookup(KeyedValues(rows, lambda key: (key,)))
    assert len(judged) == 1_000
