"""The packets of chosen connections, and no others."""

import gzip
from pathlib import Path

import pytest

from kafkascope.captures.build import Composer
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.spool import NotKept, Spool
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Connection, Opened, Packet
from kafkascope.captures.streams.streams import packets_of
from kafkascope.captures.streams.streams import streams as events_of
from tests.kit.captures import ETHER, A, B, Tape, Trickle, fragments4, ip4, tcp
from tests.kit.samples import ROOT

SAMPLES = sorted((ROOT / "captures" / "samples").glob("*.pcap*"))


def opened(source: Source) -> list[Connection]:
    return [event.connection for event in events_of(source) if isinstance(event, Opened)]


def chosen(source: Source, first: set[int]) -> list[Packet]:
    with source.again() as again:
        return [each._replace(data=bytes(each.data)) for each in packets_of(again, first)]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_each_packet_is_of_one_connection(path: Path) -> None:
    with open_inputs([path]) as source:
        found = {each.first_packet: each for each in opened(source)}
        counts = {first: len(chosen(source, {first})) for first in list(found)[:4]}
        assert counts == {first: sum(found[first].packets) for first in counts}
        assert len(chosen(source, set(found))) == source.statistics.segments


def test_ports_that_are_used_again_are_another_connection() -> None:
    tape = Tape()
    for isn in (5, 70_000):
        composer = Composer(A, B, isn=(isn, isn))
        tape.add([*composer.open(), *composer.send(0, b"x" * 500), *composer.close(0)])
        tape.add(composer.close(1))
    count = len(tape.frames) // 2
    with Source(["-"], Spool(), {0: Trickle(tape.pcap())}) as source:
        one, other = opened(source)
        assert [each.number for each in chosen(source, {one.first_packet})] == list(
            range(1, count + 1)
        )
        assert [each.data for each in chosen(source, {other.first_packet})] == [
            frame for _, frame in tape.frames[count:]
        ]


def test_fragments_belong_to_the_connection_of_their_first_one() -> None:
    other = tcp(b"z" * 3000, seq=9).replace(b"\x9c\x40", b"\x9c\x41", 1)
    one = fragments4(tcp(b"a" * 3000), 1200)
    two = fragments4(other, 1200, ident=8)
    tape = Tape()
    # The first one of a packet comes last: nobody knows before it whose the others are.
    tape.add([ETHER + ip4(tcp(b"", seq=1000)), *reversed(one), *two])
    with Source(["-"], Spool(), {0: Trickle(tape.pcap())}) as source:
        first, second = opened(source)
        assert {each.data for each in chosen(source, {first.first_packet})} == {
            tape.frames[0][1],
            *one,
        }
        assert [each.data for each in chosen(source, {second.first_packet})] == two


def test_what_was_not_kept_cannot_be_read_again(tmp_path: Path) -> None:
    tape = Tape()
    tape.add(Composer(A, B).open())
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(gzip.compress(tape.pcap()))
    with open_inputs([path]) as source:
        opened(source)
        assert len(chosen(source, {1})) == 3
    with Source(["-"], None, {0: Trickle(tape.pcap())}) as source:
        opened(source)
        with pytest.raises(NotKept):
            source.again()
