"""Connections that a proxy forwards with the same bytes are marked."""

from pathlib import Path
from unittest.mock import patch

import pytest

from kafkascope.captures.build import Composer
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Connection, Endpoint, Opened, StreamEvent
from kafkascope.captures.proxy_protocol import header_of
from kafkascope.captures.streams.relayed import RelayedLegs
from kafkascope.captures.streams.streams import Assembly
from tests.kit.captures import Tape, bytes_of, read
from tests.kit.forwarded import BACK, BROKER, CLIENT, FRONT, LOCAL, forwarded

LEGS = (CLIENT, FRONT), (BACK, BROKER)
STEP_NS = 20_000


def alone(tape: Tape, *ends: Endpoint) -> Tape:
    """The packets of a connection."""
    one = Tape()
    ports = {end.port.to_bytes(2, "big") for end in ends}
    one.frames = [each for each in tape.frames if {each[1][34:36], each[1][36:38]} == ports]
    return one


def events(tape: Tape, *, bulk: bool | None = None) -> tuple[list[StreamEvent], list[Connection]]:
    found, source, damage = read(tape.pcap(), bulk=bulk)
    assert not damage
    connections = [each.connection for each in found if isinstance(each, Opened)]
    ends = [(each.a, each.b) for each in connections if each.forwarded]
    assert source.statistics.relayed == len(ends)
    assert {each.translated for each in connections} - {None} <= {*ends}
    return found, [each for each in connections if not each.forwarded]


def of_clients(found: list[StreamEvent]) -> list[StreamEvent]:
    return [each for each in found if not each.connection.forwarded]


@pytest.mark.parametrize("ends", [(CLIENT, FRONT, BACK, BROKER), LOCAL], ids=["hosts", "host"])
@pytest.mark.parametrize("bulk", [False, True], ids=["", "bulk"])
@pytest.mark.parametrize("late", [False, True], ids=["", "late"])
@pytest.mark.parametrize("cut_at", [1460, 97])
def test_the_leg_is_marked(ends: tuple[Endpoint, ...], bulk: bool, late: bool, cut_at: int) -> None:
    tape = forwarded(ends, late=late, cut_at=cut_at)
    found, (connection,) = events(tape, bulk=bulk)
    expected, (single,) = events(alone(tape, *ends[:2]))
    leg, _ = events(alone(tape, *ends[2:]))
    assert bytes_of(of_clients(found)) == bytes_of(expected)
    assert bytes_of(found) == bytes_of(expected) | bytes_of(leg)
    assert (connection.a, connection.b) == (single.a, single.b) == ends[:2]
    assert connection.translated == ends[2:]
    assert single.handshake_ns == connection.handshake_ns
    assert connection.round_trip_ns == 2 * single.handshake_ns


def test_the_leg_of_a_real_proxy_is_marked() -> None:
    """Its connection to a broker is 50 ms away. A capture that begins later has no SYN, and so
    nothing to tell both connections from those of two clients."""
    with open_inputs([Path(__file__).parent / "proxied.pcap.gz"]) as source:
        assembly = Assembly(source)
        found = [each for block in assembly.batches() for some in block for each in some]
    ends = {str(each.connection.b): each.connection.forwarded for each in found}
    assert ends == {"10.60.0.2:9600": False, "10.60.0.1:9092": True}
    assert source.statistics.relayed == 1


@pytest.mark.parametrize("version", [1, 2])
def test_a_header_of_the_proxy_protocol_comes_first(version: int) -> None:
    header = header_of(version, CLIENT, FRONT)
    _, (connection,) = events(forwarded(header=header))
    assert connection.translated == (BACK, BROKER)
    _, connections = events(forwarded(header=header_of(version, CLIENT._replace(port=1), FRONT)))
    assert len(connections) == 2, "the header names another client"


@pytest.mark.parametrize("rounds", [1, 2])
def test_few_exchanges_on_one_host(rounds: int) -> None:
    """One pair may be chance there, until the route of the proxy is known."""
    _, connections = events(forwarded(LOCAL, rounds=rounds))
    assert len(connections) == 3 - rounds
    ends = LOCAL[0]._replace(port=3), LOCAL[1], LOCAL[2]._replace(port=4), LOCAL[3]
    short = moved(forwarded(ends, rounds=1), 5_000_000_000)
    _, connections = events(together(forwarded(LOCAL), short))
    assert [each.a.port for each in connections] == [40000, 3]


CHANGES: dict[str, tuple[int, int]] = {"request": (0, 0), "response": (0, 1), "later": (1, 0)}


@pytest.mark.parametrize("which", CHANGES)
@pytest.mark.parametrize("bulk", [False, True], ids=["", "bulk"])
def test_other_bytes_are_another_conversation(which: str, bulk: bool) -> None:
    """A proxy that changes addresses, MirrorMaker, another client on the broker's host: nothing is
    lost of either."""
    tape = forwarded(
        LOCAL,
        change=lambda number, direction, data: (
            b"!" + data[1:] if (number, direction) == CHANGES[which] else data
        ),
    )
    found, connections = events(tape, bulk=bulk)
    parts = [alone(tape, *LOCAL[:2]), alone(tape, *LOCAL[2:])]
    expected = [bytes_of(events(part)[0]) for part in parts]
    assert bytes_of(found) == expected[0] | expected[1]
    assert [each.translated for each in connections] == [None, None]


def test_a_leg_that_goes_on_with_other_bytes_is_none_from_there() -> None:
    tape = forwarded(
        change=lambda number, direction, data: (
            b"!" + data[1:] if (number, direction) == (4, 0) else data
        )
    )
    found, source, _ = read(tape.pcap())
    assert (source.statistics.relayed, source.statistics.parted) == (0, 1)
    assert not any(each.connection.forwarded for each in found)
    expected = [bytes_of(events(alone(tape, *ends))[0]) for ends in LEGS]
    assert bytes_of(found) == expected[0] | expected[1]
    assert all(each.connection.translated is None for each in found)


def together(*conversations: Tape) -> Tape:
    tape = Tape()
    tape.frames = sorted((f for c in conversations for f in c.frames), key=lambda each: each[0])
    return tape


def moved(tape: Tape, by_ns: int) -> Tape:
    tape.frames = [(at + by_ns, frame) for at, frame in tape.frames]
    return tape


def test_clients_that_start_at_once() -> None:
    """With equal first requests, of which the proxy forwards each behind all of them."""
    count = 8
    clients = [CLIENT._replace(port=40000 + n) for n in range(count)]
    backs = [BACK._replace(port=51000 + n) for n in range(count)]
    legs = enumerate(zip(clients, backs, strict=True))
    tapes = [moved(forwarded((one, FRONT, two, BROKER)), n * 1_000) for n, (one, two) in legs]
    _, connections = events(together(*tapes))
    assert [each.a for each in connections] == clients
    assert [each.translated for each in connections] == [(each, BROKER) for each in backs]


def two_clients(first: Endpoint, second: Endpoint, shift_ns: int) -> Tape:
    """Clients of one library: the same requests and responses, neither within the other's."""
    tapes = []
    for number, server in enumerate((first, second)):
        tape, composer = Tape(), Composer(Endpoint("127.0.0.1", 40000 + number), server)
        tape.now_ns += number * shift_ns
        tape.add(composer.open())
        for index in range(6):
            tape.add(composer.send(0, b"request %d" % index * 9))
            tape.add(composer.send(1, b"response %d" % index * 9))
            tape.now_ns += 3_000_000
        tapes.append(tape)
    return together(*tapes)


@pytest.mark.parametrize("shift_ns", [0, 10_000, 70_000, 1_000_000, 500_000_000])
def test_clients_of_two_brokers_on_one_host(shift_ns: int) -> None:
    tape = two_clients(Endpoint("127.0.0.1", 9092), Endpoint("127.0.0.1", 9192), shift_ns)
    found, connections = events(tape)
    assert [each.translated for each in connections] == [None, None]
    assert sum(map(len, bytes_of(found).values())) == 2 * 6 * (9 + 10) * 9


def test_proxies_in_a_row() -> None:
    """Client, two proxies, broker: the legs of both are marked."""
    tape = Tape()
    ends = (*LOCAL, Endpoint("127.0.0.1", 52000), Endpoint("127.0.0.1", 29092))
    composers = [Composer(*ends[at : at + 2], isn=(at * 100, at * 999)) for at in (0, 2, 4)]
    for composer in composers:
        tape.add(composer.open())
    for number in range(5):
        for composer in composers:
            tape.add(composer.send(0, b"request %d" % number * 9))
        for composer in composers[::-1]:
            tape.add(composer.send(1, b"response %d" % number * 9))
    found, source, _ = read(tape.pcap())
    assert {each.connection.number for each in of_clients(found)} == {0}
    assert source.statistics.relayed == 2


def test_what_the_capture_lacks_of_one_side() -> None:
    """Once the leg is known, bytes may be missing on either side."""
    tape = forwarded(rounds=20)
    data = [at for at, (_, frame) in enumerate(tape.frames) if len(frame) > 1000]
    for at in (data[40], data[31]):
        del tape.frames[at]
    found, source, _ = read(tape.pcap())
    assert source.statistics.relayed == 1
    assert {each.connection.number for each in of_clients(found)} == {0}


def test_memory_is_bounded() -> None:
    """A proxy that keeps much: nothing more is compared."""
    tape, size = Tape(), 100_000
    client, leg = Composer(CLIENT, FRONT), Composer(BACK, BROKER)
    for composer in (client, leg):
        tape.add(composer.open())
    for number in range(3):
        for direction in (0, 1):
            for composer in (client, leg)[:: -1 if direction else 1]:
                tape.add(composer.send(direction, b"%d" % number * 50))
    tape.add(client.send(0, bytes(size)))
    tape.add(leg.send(0, b"different" * 10))
    _, source, _ = read(tape.pcap(), limits=LIMITS._replace(relay_bytes=size // 2))
    assert (source.statistics.relayed, source.statistics.parted) == (1, 0)


def test_nothing_is_held_for_long() -> None:
    """Where the first response does not come, both are told meanwhile."""
    tape = forwarded(LOCAL, rounds=1)
    tape.frames = tape.frames[:10]
    late = Composer(Endpoint("10.9.9.9", 1), Endpoint("10.9.9.8", 2))
    tape.now_ns += 10_000_000_000
    tape.add(late.open())
    _, connections = events(tape)
    assert [each.number for each in connections] == [0, 1, 2]


def test_state_is_empty_in_the_end() -> None:
    for ends in (LOCAL, (CLIENT, FRONT, BACK, BROKER)):
        legs = RelayedLegs()
        with patch("kafkascope.captures.streams.streams.RelayedLegs", lambda _, legs=legs: legs):
            events(forwarded(ends))
        assert legs._held == 0
        assert not legs._undecided
        assert not legs._led
        assert not legs._starts
