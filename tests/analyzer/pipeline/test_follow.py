"""Batch after batch: the same exchanges as of all files at once, whatever is open in between."""

import shutil
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.bodies.fetch_sessions import FetchSessions
from kafkascope.analyzer.bodies.log_ends import LogEnds
from kafkascope.analyzer.bodies.waits import Waits
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversation import Conversation
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.conversation.encrypted import Encrypted
from kafkascope.analyzer.conversation.framing import FrameBuffer
from kafkascope.analyzer.conversation.pending import InFlight, Pending
from kafkascope.analyzer.conversation.phases import Phases
from kafkascope.analyzer.conversation.resync import RequestHeuristic, ResyncBuffer
from kafkascope.analyzer.conversation.undecided import Undecided
from kafkascope.analyzer.conversation.zookeeper import ZooKeeperSession
from kafkascope.analyzer.model import Origin
from kafkascope.analyzer.pipeline import state
from kafkascope.analyzer.pipeline.follow import ClosedRule, closed
from kafkascope.captures.build import Composer
from kafkascope.captures.errors import CaptureError
from kafkascope.captures.model import Connection, Endpoint
from kafkascope.captures.resumable import Resumable
from kafkascope.captures.streams.connection import ConnectionState
from kafkascope.captures.streams.copies import Copies
from kafkascope.captures.streams.reassembly import Reassembler
from kafkascope.captures.tls.handshake import Handshake
from kafkascope.captures.tls.keys.epoch import Sessions
from kafkascope.captures.tls.messages import Messages
from kafkascope.captures.tls.negotiation import Negotiation
from kafkascope.captures.tls.records import RecordBuffer
from kafkascope.captures.tls.search import Search
from kafkascope.captures.tls.sources import KeySources
from kafkascope.captures.tls.state import Side
from kafkascope.captures.tls.stream import TlsStream
from tests.analyzer.pipeline import kit
from tests.analyzer.pipeline.kit import LAST, NOW, caught, exchanges, made, rotated, tables, without
from tests.kit.captures import START_NS, A, B, Tape, records_of
from tests.kit.samples import SAMPLES
from tests.kit.traffic import tape
from tests.kit.wire import request, response
from tests.matrix import mostly_slow

ZOOKEEPER = SAMPLES / "zookeeper.pcap"


def in_batches(paths: list[Path], spool: Path, out: Path, random: Random) -> None:
    assert list(kit.in_batches(paths, spool, out, lambda: random.choice([1, 2, 5])))


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=settings().max_examples // 14)
def test_batches_together_are_the_whole(seed: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in").mkdir()
        paths = rotated(seed, path / "in")
        expected, _ = made([str(each) for each in paths], path / "whole")
        in_batches(paths, path / "spool", path / "out", Random(seed))
        found = tables(path / "out")
        whole, parts = exchanges(path / "whole"), exchanges(path / "out")
        assert sorted(row["number"] for row in parts) == list(range(1, len(parts) + 1))
        assert without(parts, "number") == without(whole, "number")
        for name in ("connections", "record_batches", "diagnostics", "topic_names"):
            assert sorted(set(found[name])) == sorted(set(expected[name])), name
        assert len(found["connections"]) == len(expected["connections"])


@pytest.mark.parametrize("count", mostly_slow([3, 7, 40], lambda count: count == 40))
def test_batches_may_end_anywhere_in_sessions_with_zookeeper(count: int, tmp_path: Path) -> None:
    data = ZOOKEEPER.read_bytes()
    packets = records_of(data)
    (tmp_path / "in").mkdir()
    paths = []
    for at in range(0, len(packets), count):
        paths.append(tmp_path / "in" / f"{at:04}.pcap")
        paths[-1].write_bytes(data[:24] + b"".join(packets[at : at + count]))
    made([str(path) for path in paths], tmp_path / "whole")
    in_batches(paths, tmp_path / "spool", tmp_path / "out", Random(count))
    whole, parts = exchanges(tmp_path / "whole"), exchanges(tmp_path / "out")
    assert {row["protocol"] for row in parts} == {"zookeeper"}
    assert without(parts, "number") == without(whole, "number")


def test_of_two_hosts_only_what_goes_on_is_carried(tmp_path: Path) -> None:
    """A connection without end keeps none of those that come and go beside it."""
    spool, out = tmp_path / "spool", tmp_path / "out"
    spool.mkdir()

    def sent(composer: Composer, number: int) -> list[bytes]:
        there = composer.send(0, request("ApiVersions", 0, number))
        return there + composer.send(1, response("ApiVersions", 0, number))

    long = Composer(A, B)
    sizes, told = [], []
    for number in range(6):
        packets = [*([] if number else long.open()), *sent(long, number)]
        for port in range(30):
            short = Composer(Endpoint(A.host, 2000 + 30 * number + port), B)
            packets += short.open() + sent(short, 1) + short.close(0) + short.close(1)
        part = Tape()
        time_ns = START_NS + number * 120_000_000_000
        part.frames = [(time_ns + at, each) for at, each in enumerate(packets)]
        (spool / f"{number}.pcap").write_bytes(part.pcap())
        (result,) = caught(spool, out, NOW)
        (path,) = (out / "_carry" / f"batch_id={result.manifest['batch_id']}").glob("*")
        (row,) = pq.read_table(path).to_pylist()
        sizes.append(len(row["carried"]))
        told.append(result.manifest["rows"]["connections"])
    assert told == [0, *[30] * 5]
    assert max(sizes) < 1.05 * min(sizes)
    caught(spool, out, LAST)
    assert sorted(row["number"] for row in exchanges(out)) == list(range(1, 187))
    assert sorted(row["exchanges"] for row in kit.rows_of(out, "connections")) == [*[1] * 180, 6]


def test_a_batch_that_was_killed_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    paths = rotated(3, tmp_path / "in")
    half = len(paths) // 2
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for path in paths[:half]:
            shutil.copy(path, tmp_path / name)
        caught(tmp_path / name, tmp_path / f"out-{name}", NOW)
        for path in paths[half:]:
            shutil.copy(path, tmp_path / name)
    # As if killed between the tables and the manifest.
    out = tmp_path / "out-one"
    (result,) = caught(tmp_path / "one", out, NOW)
    (out / "_manifest" / f"{result.manifest['batch_id']}.json").unlink()
    (out / "_staging" / "x").mkdir(parents=True)
    again = caught(tmp_path / "one", out, NOW)
    caught(tmp_path / "two", tmp_path / "out-two", NOW)
    assert again[0].manifest["batch_id"] == result.manifest["batch_id"]
    assert tables(out) == {
        name: [row.replace("/two/", "/one/") for row in rows]
        for name, rows in tables(tmp_path / "out-two").items()
    }
    assert not (out / "_staging").exists()


def test_what_is_complete_takes_no_more(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rotated(3, tmp_path / "in")
    assert caught(tmp_path / "in", tmp_path / "out", LAST)
    with pytest.raises(CaptureError, match="complete"):
        caught(tmp_path / "in", tmp_path / "out", LAST)


def test_a_file_is_taken_once_and_another_one_that_begins_like_it_too(tmp_path: Path) -> None:
    """A copy is the same file; a part has the same first packet, and another size."""
    frames = tape(1).frames
    taken = []
    for name, count in (("a", 40), ("b", 40), ("c", 20)):
        part = Tape()
        part.frames = frames[:count]
        (tmp_path / f"{name}.pcap").write_bytes(part.pcap())
        taken.append(len(caught(tmp_path, tmp_path / "out", NOW)))
    assert taken == [1, 0, 1]


def test_the_youngest_file_of_a_folder_is_not_taken(tmp_path: Path) -> None:
    import os

    for number in range(3):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(b"")
        os.utime(path, (1000 + number, 1000 + number))
    names = sorted(map(str, tmp_path.iterdir()))
    assert closed(names, ClosedRule(settle_s=10), 1005) == names[:2]
    assert closed(names, ClosedRule(settle_s=10), 1012) == names
    assert closed(names, LAST, 1003) == names


def resumables() -> list[Resumable]:
    """One of each class that has a state of its own."""
    a, b = Endpoint("10.0.0.1", 50000), Endpoint("10.0.0.2", 9092)
    connection, context = Connection(0, a, b, 1), Context()
    both = ConnectionState(connection, b"there", b"back")
    conversation = Conversation(connection, context, 0)
    framing, search = FrameBuffer(RequestHeuristic()), ResyncBuffer(RequestHeuristic())
    return [
        *(Reassembler(), Copies(), both, both.directions[0], Conversations(context), conversation),
        *(Undecided(connection, context), framing, search),
        *(Encrypted(connection, context, 0), TlsStream(connection, 0, KeySources()), Side(0)),
        *(Handshake(0), Negotiation(), Messages(), RecordBuffer(), Search(), Sessions()),
        *(RequestHeuristic(), Phases(), InFlight(), Pending(Origin(1, 0), None, "")),
        *(ZooKeeperSession(), FetchSessions(), Waits(), LogEnds()),
    ]


def test_a_change_of_fields_is_a_change_of_the_version() -> None:
    """Change `state.VERSION` with the digest of all fields of all classes in a state."""
    dumped = {type(each).__name__: sorted(each.dump()) for each in resumables()}
    assert len(dumped) == len(resumables())
    records = {
        kind.__name__: getattr(kind, "_fields", None) or tuple(each.name for each in fields(kind))
        for kind in (Connection, *state.RECORDS)
    }
    shape = repr((sorted(dumped.items()), sorted(records.items())))
    assert (state.VERSION, sha256(shape.encode()).hexdigest()[:12]) == (30, "6a9bb9a94b47"), shape


def test_what_is_read_is_what_was_written() -> None:
    for each in resumables():
        dumped = state.write(each.dump())
        assert state.write(each.load(state.read(dumped)).dump()) == dumped


def test_states_of_other_versions_are_refused() -> None:
    data = state.write([1, "two"])
    assert state.read(data) == [1, "two"]
    with pytest.raises(state.OtherState, match="version 99"):
        state.read(data.replace(b"[%d, " % state.VERSION, b"[99, ", 1))
    # As version 6 wrote it.
    with pytest.raises(state.OtherState, match="version 6"):
        state.read(b'[6, {"k": "o", "c": "Phases", "n": 0, "v": {}}]')


def test_a_state_is_made_of_known_classes_only() -> None:
    with pytest.raises(state.OtherState, match="Popen"):
        state.read(b'[%d, [], {"Popen": ["true"]}]' % state.VERSION)
    with pytest.raises(TypeError, match="Path"):
        state.write(Path())
