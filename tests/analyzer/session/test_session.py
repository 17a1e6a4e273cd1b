"""Columns give back what was put in."""

from pathlib import Path
from random import Random

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.columns import ValueList
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.exchanges.rows import row_of, to_json
from kafkascope.analyzer.session.deltas import Growth, apply
from kafkascope.analyzer.session.packing import COLUMNS, TABLES
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.topics import nameless
from kafkascope.captures.inputs.spool import Spool
from tests.kit.captures import session_of
from tests.kit.samples import ROOT, TLS
from tests.kit.wire import CONVERSATION, told

SAMPLES = sorted(ROOT.joinpath("captures", "samples").glob("*.pcap*"))


def test_equal_values_have_one_number() -> None:
    table: ValueList[str] = ValueList()
    assert [table.number(value) for value in ("a", "b", "a")] == [0, 1, 0]
    assert table.values == ["a", "b"]


def test_an_exchange_is_found_by_its_number() -> None:
    context = Context()
    session = Session(context, lambda file, at, size: bytes(size))
    for exchange in told(CONVERSATION, context):
        session.add(exchange)
    index = session.index_of(3)
    assert index is not None
    assert session.columns["number"][index] == 3
    assert session.index_of(0) is None
    assert session.index_of(10_000) is None


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_exchanges_come_back_as_they_were(path: Path) -> None:
    with open_capture([path]) as first, open_capture([path], spool=Spool()) as second:
        session = session_of(second)
        exchanges = list(first.exchanges())
        assert len(session) == len(exchanges) > 0
        for index, exchange in enumerate(exchanges):
            again = session.exchange(index)
            for side in ("request", "response"):
                was, now = getattr(exchange, side), getattr(again, side)
                assert (was is None) == (now is None)
                if exchange.state == "opaque" and was is not None:
                    # Of bytes that are no Kafka only a sample was held, from the first byte on.
                    assert was.frame.parts == now.frame.parts
                    continue
                assert was is None or (was.frame, was.body) == (now.frame, now.body)
            assert again.fetch_session == exchange.fetch_session
            assert again.ended_ns == exchange.ended_ns
            names = first.context.names
            assert to_json(row_of(again, names)) == to_json(row_of(exchange, names))


def _values(session: Session) -> list[tuple[object, ...]]:
    """Columns, with what their numbers stand for."""
    found = []
    for name in COLUMNS:
        column = session.columns[name]
        if name in TABLES:
            values = session.tables[name].values
            found.append((name, *(values[number] for number in column)))
        else:
            found.append((name, *column))
    return found


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_pairs_of_the_kernel_make_the_same_columns_as_exchanges(path: Path) -> None:
    with open_capture([path]) as first, open_capture([path], spool=Spool()) as second:
        pairs = session_of(first)
        objects = Session(second.context, second.source.read, plaintext=second.plaintext)
        texts = [text for each in second.exchanges() for text in objects.extend([each])]
        rows = [
            row_of(objects.exchange(index), second.context.names) for index in range(len(texts))
        ]
    assert _values(pairs) == _values(objects)
    assert pairs.ids() == objects.ids()
    late = [any(map(nameless, row.topics)) for row in rows]
    assert [t for t, wait in zip(texts, late, strict=True) if not wait] == [
        result(row) for row, wait in zip(rows, late, strict=True) if not wait
    ]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_who_forgets_what_was_taken_gives_the_same_deltas(path: Path) -> None:
    with open_capture([path], spool=Spool()) as capture:
        context, exchanges = capture.context, list(capture.exchanges())
    at_once = Session(context, lambda file, at, size: bytes(size))
    for exchange in exchanges:
        at_once.add(exchange)
    child = Session(context, lambda file, at, size: bytes(size))
    growth, shown = Growth(child, forget=True), Session(Context(), child._read)
    for begin in range(0, len(exchanges), 50):
        part = exchanges[begin : begin + 50]
        child.extend(part)
        apply(growth.take(), shown)
        assert not len(child)
    assert _values(shown) == _values(at_once)
    assert len(shown) == shown.rows_appended == len(exchanges)
    for index in range(len(shown)):
        assert shown.frames(index) == at_once.frames(index)
        assert shown.remarks(index) == at_once.remarks(index)


@pytest.mark.parametrize("seed", range(6))
def test_undecoded_bytes_of_damaged_captures_are_kept(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "damaged.pcap"
    random = Random(seed)
    data = bytearray(SAMPLES[0].parent.joinpath("libraries.pcap").read_bytes())
    for _ in range(120):
        data[random.randrange(5_000, len(data))] = random.randrange(256)
    path.write_bytes(data)
    with open_capture([path]) as capture:
        exchanges = list(capture.exchanges())
        session = Session(capture.context, capture.source.read)
        session.extend(exchanges)
        for index, exchange in enumerate(exchanges):
            assert session.exchange(index).undecoded == exchange.undecoded
        # Where a record's own size was hit, not much is left.
        assert len(exchanges) < 100 or any(exchange.undecoded for exchange in exchanges)


@pytest.mark.parametrize("name", ["tls12-tickets", "tls13-keyupdate-client", "tls12-loss"])
def test_bytes_out_of_tls_come_back_as_they_were(name: str) -> None:
    path, keys = TLS / f"{name}.pcap.gz", [TLS / f"{name}.keys"]
    with (
        open_capture([path], keylog=keys) as first,
        open_capture([path], keylog=keys, spool=Spool()) as second,
    ):
        session = session_of(second)
        compared = 0
        for index, exchange in enumerate(first.exchanges()):
            if exchange.state == "opaque":
                continue
            again = session.exchange(index)
            for side in ("request", "response"):
                was, now = getattr(exchange, side), getattr(again, side)
                assert (was is None) == (now is None)
                if was is not None and now is not None:
                    compared += 1
                    assert now.frame._replace(parts=()) == was.frame._replace(parts=())
                    assert was.body == now.body
                    packets = [part.packet for part in was.frame.parts]
                    assert [part.packet for part in now.frame.parts] == packets
        assert compared > 10
