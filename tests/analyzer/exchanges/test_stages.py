"""Where the time of an exchange went, by captures made of exact packets at one point of a path."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.exchanges.stages import stages_of
from kafkascope.analyzer.model import Stages
from kafkascope.captures.build import Composer
from kafkascope.kernel.path import FILLED, SENT_AGAIN_NS
from tests.kernel import networks
from tests.kernel.networks import contexts, encrypted, keys_of
from tests.kit.authority import Authority
from tests.kit.captures import Tape
from tests.kit.samples import pairs_of, rows_of
from tests.kit.translated import POD, Two, translated
from tests.kit.wire import BROKER, CLIENT, MS, beat, heartbeat, produce, request, response

MSS = 1_000
WINDOW = 48
"""Where the receive window stands in a packet."""
FAR, NEAR = 20.0, 0.1
AT_CLIENT, BETWEEN, AT_BROKER = (FAR, NEAR), (FAR, FAR), (NEAR, FAR)


class Talk:
    """A connection as it is captured at a point with these round trips to both ends. All times are
    milliseconds."""

    def __init__(self, trips: tuple[float, float] = AT_CLIENT, *, scale: int = 0) -> None:
        self.to_broker, self.to_client = trips
        self.tape = Tape()
        self.composer = Composer(CLIENT, BROKER, mss=MSS, scale=scale, isn=(7, 4_294_966_000))
        self.sent = [b"", b""]
        for packet, trip in zip(self.composer.open(), (0.0, *trips), strict=True):
            self.wait(trip).packet(packet)

    def wait(self, ms: float) -> Talk:
        self.tape.now_ns += round(ms * MS)
        return self

    def packet(self, data: bytes) -> Talk:
        self.tape.frames.append((self.tape.now_ns, data))
        return self

    def send(self, side: int, data: bytes, each: float = 0.0) -> Talk:
        """The segments of some bytes, with the time between them."""
        self.sent[side] = data
        for at in range(0, len(data), MSS):
            self.wait(each if at else 0.0)
            for head, part in self.composer.segments(side, data[at : at + MSS]):
                self.packet(head + part)
        return self

    def ack(self, side: int, window: int | None = None) -> Talk:
        packet = bytearray(self.composer.packet(side, 0x10))
        if window is not None:
            packet[WINDOW : WINDOW + 2] = window.to_bytes(2, "big")
        return self.packet(bytes(packet))

    def again(self, side: int) -> Talk:
        """The last bytes of a side once more."""
        seq = self.composer.next[side] - len(self.sent[side]) & 0xFFFF_FFFF
        return self.packet(self.composer.again(side, seq, self.sent[side]))

    def lost(self, side: int, data: bytes, missing: int, after: float) -> Talk:
        """Send segments of which one comes late: it was lost before the capture point."""
        packets = [head + part for head, part in self.composer.segments(side, data)]
        late = packets.pop(missing)
        for each in packets:
            self.packet(each)
        return self.wait(after).packet(late)

    def answer(self, data: bytes = beat(1), server: float = 10) -> Talk:
        """The answer to what was sent now, and its acknowledgement."""
        self.wait(self.to_broker + server).send(1, data)
        return self.wait(self.to_client).ack(0)

    def stages(self, folder: Path, snaplen: int = 262_144) -> list[Stages]:
        path = folder / "talk.pcap"
        path.write_bytes(self.tape.pcap(snaplen=snaplen))
        return read(path)

    def only(self, folder: Path) -> Stages:
        (found,) = self.stages(folder)
        return found


def is_sent_by(side: int, frame: bytes) -> bool:
    return frame[34:36] == (CLIENT, BROKER)[side].port.to_bytes(2, "big")


def read(path: Path) -> list[Stages]:
    """The stages of rows in milliseconds."""
    return list(map(stages_in, rows_of(path, keylog=keys_of(path))))


def stages_in(row: Row) -> Stages:
    times = row.request_transfer_ns, row.serving_ns, row.response_transfer_ns, row.rtt_ns
    ms = [None if each is None else each / MS for each in (*times, row.zero_window_ns)]
    return Stages(*ms[:4], row.retransmissions, ms[4], row.stalled_by, row.capture_point)  # type: ignore[call-arg,arg-type]


LARGE = produce(1, records=bytes(5_500))


def metadata(number: int = 1) -> bytes:
    return request("Metadata", 1, number)


def answer(number: int = 1) -> bytes:
    """A response of some segments."""
    brokers = [{"node_id": node, "host": "b" * 200, "port": 9092} for node in range(30)]
    return response("Metadata", 1, number, brokers=brokers)


ANSWER = answer()


@pytest.mark.parametrize(
    ("trips", "point"), [(AT_CLIENT, "client"), (BETWEEN, "between"), (AT_BROKER, "broker")]
)
def test_nothing_happens(trips: tuple[float, float], point: str, tmp_path: Path) -> None:
    found = Talk(trips).send(0, heartbeat(1)).answer().only(tmp_path)
    assert found == (0, 10, 0, trips[0], 0, 0, None, point)


def test_near_ends_on_both_sides_leave_the_point_unknown(tmp_path: Path) -> None:
    found = Talk((NEAR, NEAR)).send(0, heartbeat(1)).answer().only(tmp_path)
    assert found == (0, 10, 0, NEAR, 0, 0, None, None)


# Loss


def test_a_part_of_a_request_is_lost_before_the_point(tmp_path: Path) -> None:
    talk = Talk(AT_BROKER).lost(0, LARGE, 2, 240).answer(response("Produce", 7, 1))
    assert talk.only(tmp_path)[:7] == (240, 10, 0, NEAR, 0, 0, "network")


def test_a_part_of_a_response_is_lost_before_the_point(tmp_path: Path) -> None:
    talk = Talk().send(0, metadata()).wait(FAR + 10).lost(1, ANSWER, 2, 240)
    assert talk.ack(0).only(tmp_path)[:7] == (0, 10, 240, FAR, 0, 0, "network")


def test_a_response_that_is_never_acknowledged_counts_for_a_time(tmp_path: Path) -> None:
    talk = Talk(AT_BROKER).send(0, heartbeat(1)).wait(10 + NEAR).send(1, beat(1))
    longest = SENT_AGAIN_NS / MS
    talk.wait(220).again(1).wait(longest - 300).again(1).wait(90).again(1)
    assert talk.only(tmp_path)[4] == 2


def test_a_request_that_was_sent_again_for_nothing_is_no_loss(tmp_path: Path) -> None:
    """Its answer was on the way, as behind a tail loss probe."""
    talk = Talk().send(0, heartbeat(1)).wait(40).again(0).wait(5).send(1, beat(1)).ack(0)
    found = talk.only(tmp_path)
    assert (found.retransmissions, found.stalled_by) == (1, None)


def test_what_was_sent_again_belongs_to_its_exchange(tmp_path: Path) -> None:
    talk = Talk().send(0, heartbeat(1)).wait(220).again(0).answer()
    talk.wait(50).send(0, heartbeat(2)).answer(beat(2))
    first, second = talk.stages(tmp_path)
    assert (first.retransmissions, first.stalled_by) == (1, "network")
    assert second == (0, 10, 0, FAR, 0, 0, None, "client")


def test_events_stay_until_the_exchanges_of_their_block_are_described(tmp_path: Path) -> None:
    """Brokers that replicate on a busy machine: 400 responses of one block are sent again."""
    talk = Talk(AT_BROKER)
    for number in range(400):
        talk.send(0, heartbeat(number)).wait(10).send(1, beat(number)).wait(7).again(1).wait(1).ack(
            0
        )
    assert [found.retransmissions for found in talk.stages(tmp_path)] == 400 * [1]


# Windows


def test_a_window_that_stays_closed_is_counted_to_the_end(tmp_path: Path) -> None:
    """The client closes its window when the response has come, as far as the exchange goes."""
    talk = Talk().send(0, metadata()).wait(FAR + 10).send(1, ANSWER[:3_000]).ack(0, window=0)
    assert talk.wait(30).send(1, ANSWER[3_000:]).ack(0, window=0).only(tmp_path).closed_ns == 30


# What only looks slow


def test_a_burst_that_took_longer_than_the_handshake_is_the_round_trip(tmp_path: Path) -> None:
    """A path that has become slow: acknowledgements tell it, and not the server."""
    talk = Talk().send(0, LARGE).wait(80).ack(1).wait(10).send(1, response("Produce", 7, 1)).ack(0)
    assert talk.only(tmp_path)[:7] == (0, 10, 0, FAR, 0, 0, None)


def test_packets_that_come_again_with_other_addresses_are_no_event(tmp_path: Path) -> None:
    """As on a host that translates addresses: its capture has each packet twice."""
    talk, both = talk_of_all(), Two()
    for time_ns, frame in talk.tape.frames:
        times = time_ns, time_ns + 4_000
        frames = [frame, translated(frame, (CLIENT, BROKER), (CLIENT, POD))]
        both.frames += zip(times, frames if is_sent_by(0, frame) else frames[::-1], strict=True)
    path = tmp_path / "both.pcapng"
    path.write_bytes(both.pcap())
    for found, expected in zip(read(path), talk.stages(tmp_path), strict=True):
        assert found.request_ns == expected.request_ns
        assert found.server_ns == pytest.approx(10, abs=0.01)
        assert found.trip_ns == pytest.approx(FAR, abs=0.01)
        assert found[5:] == expected[5:]


# What is not known


def talk_of_all() -> Talk:
    """Loss of a request and of a response, a closed window, and a pause."""
    talk = Talk(BETWEEN).send(0, heartbeat(1)).wait(220).again(0).answer()
    talk.wait(3).send(0, heartbeat(2)).wait(FAR + 10).send(1, beat(2)[:4]).ack(0, window=0)
    talk.wait(400).ack(0).wait(9).send(1, beat(2)[4:]).wait(220).again(1).wait(5).ack(0)
    return (
        talk.wait(3).send(0, heartbeat(3)[:4]).wait(150).send(0, heartbeat(3)[4:]).answer(beat(3))
    )


def test_bytes_that_are_cut_off_change_nothing(tmp_path: Path) -> None:
    found = talk_of_all().stages(tmp_path)
    assert [each.stalled_by for each in found] == ["network", "client", "client"]
    assert talk_of_all().stages(tmp_path, snaplen=96) == found


def test_windows_that_are_cut_off_are_none(tmp_path: Path) -> None:
    """68 bytes of a packet have it, 48 have not."""
    talk = Talk().send(0, metadata()).wait(FAR + 10).send(1, ANSWER[:3_000])
    talk.ack(0, window=0).wait(500).ack(0).wait(FAR).send(1, ANSWER[3_000:]).ack(0)
    assert any(each.closed_ns for each in talk.stages(tmp_path, snaplen=68))
    assert not any(each.closed_ns for each in talk.stages(tmp_path, snaplen=48))


@pytest.mark.parametrize("side", [0, 1])
def test_one_direction_tells_nothing_of_the_other(side: int, tmp_path: Path) -> None:
    talk = talk_of_all()
    talk.tape.frames = [each for each in talk.tape.frames if is_sent_by(side, each[1])]
    found = talk.stages(tmp_path)
    assert found
    for each in found:
        assert (each.server_ns, each.trip_ns, each.point, each.stalled_by) == (None,) * 4
        assert (each.response_ns if side == 0 else each.request_ns) is None
        assert (each.request_ns if side == 0 else each.response_ns) is not None


@pytest.mark.parametrize("first", [3, 4])
def test_without_a_handshake_transfers_alone_are_known(first: int, tmp_path: Path) -> None:
    """From a request on, or from its answer."""
    talk = talk_of_all()
    del talk.tape.frames[:first]
    found = talk.stages(tmp_path)[-2:]
    assert [each.request_ns for each in found] == [0, 150]
    assert [each.response_ns for each in found] == [629, 0]
    assert {(each.server_ns, each.trip_ns, each.point) for each in found} == {(None,) * 3}
    assert [each.stalled_by for each in found] == ["client", "client"]


def test_our_own_recordings_have_no_path(tmp_path: Path) -> None:
    path = tmp_path / "recorded.pcapng"
    path.write_bytes(talk_of_all().tape.pcapng("kafkascope: client leg"))
    found = read(path)
    assert len(found) == 3
    assert set(found) == {Stages()}


def test_a_request_without_an_answer_has_its_transfer(tmp_path: Path) -> None:
    talk = Talk().send(0, produce(1, acks=0)[:9]).wait(150).send(0, produce(1, acks=0)[9:])
    assert talk.wait(FAR).ack(1).only(tmp_path)[:5] == (150, None, None, FAR, None)


def test_tls_tells_times_alone(tmp_path: Path) -> None:
    """Offsets in the stream are those of the plain text, so what was sent again is told by time."""
    certificate = Authority(tmp_path).issue("broker", "10.0.1.2")
    log = tmp_path / "talk.keys"
    said = [(0, heartbeat(1)), (1, beat(1)), (0, heartbeat(2)[:4]), (0, heartbeat(2)[4:])]
    both = contexts(certificate, log, True)
    *handshake, asked, told, begun, ended, last = encrypted(
        both, lambda _: [*said, (1, beat(2))], Random(1)
    )
    talk = Talk()
    for side, data in handshake:
        talk.wait(50).send(side, data).ack(1 - side)
    talk.wait(1).send(0, asked[1]).wait(220).again(0).wait(FAR + 10).send(1, told[1]).ack(0)
    talk.wait(1).send(0, begun[1]).wait(FAR).ack(1).wait(130).send(0, ended[1])
    talk.wait(FAR + 10).send(1, last[1]).ack(0)
    lost, paused = talk.stages(tmp_path)
    assert lost[:7] == (220, 10, 0, FAR, 1, 0, "network")
    assert paused[:7] == (130 + FAR, 10, 0, FAR, 0, 0, "client")


# Laws


def test_stages_are_parts_of_the_time_of_their_exchange(tmp_path: Path) -> None:
    certificate = Authority(tmp_path).issue("broker", "10.0.1.2")
    whole = 0
    for seed in range(40):
        path = networks.write(seed, tmp_path, certificate)
        for _, exchange in pairs_of(path, keylog=keys_of(path)):
            found = stages_of(exchange)
            *times, again, closed, stalled, _ = found
            assert all(each is None or each >= 0 for each in (*times, again, closed)), found
            if exchange.request is None or exchange.response is None:
                assert (found.server_ns, stalled) == (None, None)
                continue
            begin, told = exchange.request.spot.first_ns, exchange.response.spot.first_ns
            # Behind responses that were sent again it is not known, either.
            assert found.server_ns is None or found.trip_ns is not None
            assert None not in (found.request_ns, found.response_ns, closed)
            if told >= exchange.request.spot.last_ns:
                whole += 1
                # Where its first bytes had been lost before, later ones came first.
                events = exchange.connection.path.events
                holes = [e[2] for e in events if e[0] == FILLED and begin <= e[3] <= told]
                begin = min([begin, *holes])
                assert found.request_ns + (found.server_ns or 0) <= told - begin
                assert closed <= told - begin + found.response_ns
    assert whole > 300
