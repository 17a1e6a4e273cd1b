"""Connections that a capture holds before and after address translation are read once."""

from collections.abc import Callable
from struct import pack

import pytest

from kafkascope.captures.build import Composer
from kafkascope.captures.model import Endpoint
from kafkascope.captures.packets.tcp import segment_of
from kafkascope.captures.streams.copies import sign_of
from tests.kit.captures import Tape, bytes_of, packet, read
from tests.kit.translated import CLIENT, SERVICE, WAYS, WIDE, made, translated


def events(tape: Tape, *, bulk: bool | None = None) -> tuple[dict[str, bytes], list[object], int]:
    found, source, damage = read(tape.pcap(), bulk=bulk)
    assert not damage
    assert source.statistics.connections == len({each.connection.number for each in found})
    connections = {id(each.connection): each.connection for each in found}
    return bytes_of(found), list(connections.values()), source.statistics.translated


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wide", [False, True], ids=["v4", "v6"])
@pytest.mark.parametrize("bulk", [False, True], ids=["", "bulk"])
def test_a_conversation_is_read_once(way: str, wide: bool, bulk: bool) -> None:
    if wide and way == "both":
        pytest.skip("nothing but sequence numbers is the same: see the test of scans")
    once, twice = made(way, wide=wide)
    expected, _, _ = events(once)
    found, (connection,), count = events(twice, bulk=bulk)
    assert (found, count) == (expected, 1)
    ends = WAYS[way] if not wide else tuple(WIDE[end] for end in WAYS[way])
    assert connection.translated == ends
    assert connection.gap_bytes == connection.retransmissions == (0, 0)
    assert sum(connection.bytes) == 12 * 3_100
    assert connection.handshake_ns is not None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("skip", [1, 2, 3, 4, 5, 9])
def test_from_the_middle(way: str, skip: int) -> None:
    """Whichever packet is the first."""
    once, twice = made(way, skip=skip)
    expected, _, _ = events(once)
    found, (connection,), _ = events(twice)
    assert list(found.values()) == list(expected.values())
    assert connection.translated is not None


def test_what_is_sent_again_is_counted_once() -> None:
    _, twice = made("dnat", resend=3)
    _, (connection,), _ = events(twice)
    assert connection.retransmissions == (3, 0)


@pytest.mark.parametrize("lost", [0, 1])
def test_what_one_interface_lacks_the_other_has(lost: int) -> None:
    once, twice = made("dnat")
    expected, _, _ = events(once)
    del twice.frames[20 + lost :: 10]
    found, (connection,), _ = events(twice)
    assert list(found.values()) == list(expected.values())
    assert connection.gap_bytes == (0, 0)


def test_ports_that_are_used_again() -> None:
    _, twice = made("snat")
    again = [(at + 5_000_000_000, frame) for at, frame in twice.frames]
    twice.frames += [
        (at, f[:38] + bytes([f[38] ^ 1]) + f[39:42] + bytes([f[42] ^ 1]) + f[43:])
        for at, f in again
    ]
    _, connections, count = events(twice)
    assert len(connections) == count == 2


def scan(change: Callable[[int, bytearray], None]) -> Tape:
    """SYNs of a program that looks for open ports, with one sequence number."""
    tape = Tape()
    (syn, *_) = Composer(CLIENT, SERVICE, isn=(77, 1)).open()
    for number in range(40):
        frame = bytearray(syn)
        frame[33] = number
        frame[50:52] = pack(">H", 1000 + number)
        change(number, frame)
        tape.add([bytes(frame)], step_ns=10_000_000)
    return tape


@pytest.mark.parametrize("alike", ["in turn", "together", "from the middle"])
def test_generated_clients_are_no_translation(alike: str) -> None:
    """One conversation, written for ten clients, with the same numbers and ids."""
    once, _ = made("dnat", skip=8 if alike == "from the middle" else 0)
    tape = Tape()
    for number in range(10):
        ends = Endpoint(f"10.244.1.{50 + number}", 40000), SERVICE
        apart = 1_000_000_000 if alike == "in turn" else 10_000_000
        tape.frames += [
            (at + number * apart, translated(frame, (CLIENT, SERVICE), ends))
            for at, frame in once.frames
        ]
    if alike == "together":
        tape.frames = [
            (at - number * 10_000_000 + number * 1_000, frame)
            for number, (at, frame) in (
                (index // len(once.frames), each) for index, each in enumerate(tape.frames)
            )
        ]
    tape.frames.sort(key=lambda each: each[0])
    _, connections, count = events(tape)
    assert (len(connections), count) == (10, 0)


@pytest.mark.parametrize("ident", [True, False])
def test_scans_are_no_translation(ident: bool) -> None:
    def change(number: int, frame: bytearray) -> None:
        frame[18:20] = pack(">H", number + 1 if ident else 0)

    _, connections, count = events(scan(change))
    assert (len(connections), count) == (40, 0)


OTHER_PORT, OTHER_HOST = Endpoint(CLIENT.host, 40001), Endpoint("10.244.1.8", 40000)


@pytest.mark.parametrize("other", [OTHER_PORT, OTHER_HOST], ids=["port", "host"])
@pytest.mark.parametrize("skip", [0, 3])
def test_connections_of_one_program_are_no_translation(other: Endpoint, skip: int) -> None:
    """Programs that write captures give connections the same sequence numbers and IP ids."""
    tape = Tape()
    composers = [Composer(client, SERVICE, isn=(1000, 5000)) for client in (CLIENT, other)]
    for composer in composers:
        packets = composer.open()
        tape.add(packets[skip:], step_ns=1_000)
    for number in range(20):
        for composer in composers:
            tape.add(composer.send(0, b"the same request %d" % number), step_ns=1_000)
            tape.add(composer.send(1, b"the same response %d" % number), step_ns=1_000)
    _, connections, count = events(tape)
    assert (len(connections), count) == (2, 0)


@pytest.mark.parametrize("other", [OTHER_PORT, OTHER_HOST], ids=["port", "host"])
def test_connections_that_open_together_are_no_translation(other: Endpoint) -> None:
    tape = Tape()
    composers = [Composer(client, SERVICE, isn=(1000, 5000)) for client in (CLIENT, other)]
    for packets in zip(*(composer.open() for composer in composers), strict=True):
        tape.add(packets, step_ns=1_000)
    _, connections, count = events(tape)
    assert (len(connections), count) == (2, 0)


@pytest.mark.parametrize("wide", [False, True])
def test_the_id_comes_out_of_the_fingerprint(wide: bool) -> None:
    once, _ = made("dnat", wide=wide)
    for _, frame in once.frames:
        segment = segment_of(packet(frame))
        assert not isinstance(segment, str)
        at = 70 if wide else 18
        assert sign_of(segment) == int.from_bytes(frame[at : at + 2], "big")
