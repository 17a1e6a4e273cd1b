"""What the UI keeps of arrays, keys and tables that are larger than usual."""

from types import SimpleNamespace
from typing import Any

import pytest

from kafkascope.library import passes
from kafkascope.library.capture import open as open_capture
from kafkascope.tui.data.store import Store
from kafkascope.tui.document.tree import SHOWN, Item, Space, Tree, limited
from kafkascope.tui.limits import LIMITS
from kafkascope.tui.screens.topics import RecordKeys
from tests.small_tables import SAMPLES

MANY = 300_000


def test_arrays_of_any_length_are_shown_a_hundred_at_a_time() -> None:
    items = limited([Item(str(number), start=number, end=number + 1) for number in range(MANY)])
    seen = 0
    while True:
        *shown, last = items if len(items) > SHOWN else [*items, None]
        assert len(shown) <= SHOWN
        assert [item.label for item in shown[:2]] == [str(seen), str(seen + 1)]
        seen += len(shown)
        if last is None:
            break
        assert last.value == f"... {MANY - seen:,} more"
        assert (last.start, last.end) == (seen, MANY)
        items = last.made
    assert seen == MANY


def test_a_byte_far_inside_of_an_array_is_found() -> None:
    root = Item("array", start=0, end=MANY)
    root.adopt(limited([Item(str(n), start=n, end=n + 1) for n in range(MANY)]))
    inside = Item("compressed", start=MANY, end=MANY + 1)
    inside.adopt(limited([Item(f"inner {n}", start=n, end=n + 1, space=1) for n in range(MANY)]))
    tree = Tree([root, inside], [Space("Wire", b""), Space("Decompressed", b"")])
    found = tree.find(0, MANY - 1)
    assert found.label == str(MANY - 1)
    found = tree.find(1, MANY - 1)
    assert found.label == f"inner {MANY - 1}"


def test_keys_of_records_are_kept_short() -> None:
    counted = RecordKeys(Store(), "orders", "topic == orders")
    for number in range(10):
        for _ in range(2):
            counted._count(bytes(100_000) + b"%d" % number, b"", number)
    assert list(counted.found.values()) == [2] * 10
    assert max(map(len, counted.found)) <= LIMITS.record_key_bytes + 16
    assert counted.partitions.keys() == counted.found.keys()
    assert counted.lines()


def nothing(*_: Any) -> None:
    pass


def test_a_library_keeps_some_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MOST_COUNTED", 2)
    (path,) = (each for each in SAMPLES if each.name == "sasl-old.pcap")
    with open_capture([path]) as capture:
        made: list[Any] = []
        for key in ("a", "b", "c", "a"):
            statistic = SimpleNamespace(add=nothing, NAME=key)
            told = capture.passes.count(key, lambda each=statistic: made.append(each) or each)
            assert told.found is made[-1]
        assert len(made) == 4  # that of "a" was counted again
        assert capture.passes.count("c", made.clear).found is made[2]
