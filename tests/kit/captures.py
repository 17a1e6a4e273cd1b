"""Packets and capture files for tests, made in code; and events in a form that can be compared."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from struct import pack
from typing import Any

from kafkascope.analyzer.exchanges.offline import OpenInput
from kafkascope.analyzer.session.session import Session
from kafkascope.captures.build import Composer
from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.records import FileGap
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.captures.model import Chunk, Closed, Endpoint, Gap, Opened, Packet, StreamEvent
from kafkascope.captures.packets.tcp import ACK, Segment, segment_of
from kafkascope.captures.streams.reassembly import Reassembler
from kafkascope.captures.streams.streams import streams
from kafkascope.dissectors.values import Uuid
from kafkascope.kernel.headers import fingerprint
from tests.kit.wire import BROKER, CLIENT, MS, START, beat, heartbeat, request, response

A = Endpoint("10.0.0.1", 40000)
B = Endpoint("10.0.0.2", 9092)
START_NS = 1_700_000_000_000_000_000
FLOW = bytes([10, 0, 0, 1, 10, 0, 0, 2]) + pack(">HH", 40000, 9092)
BACK = bytes([10, 0, 0, 2, 10, 0, 0, 1]) + pack(">HH", 9092, 40000)
_idents = iter(range(1, 1 << 60))


def packet(data: bytes, time_ns: int = START_NS, number: int = 1, **others: Any) -> Packet:
    fields = {"link_type": 1, "length": len(data), "file": 0, "at": 0, "interface": 0} | others
    return Packet(number=number, time_ns=time_ns, data=data, **fields)


def segment(
    direction: int,
    seq: int,
    payload: bytes = b"",
    flags: int = ACK,
    *,
    ack: int = 0,
    ms: float = 0,
    number: int = 1,
    length: int | None = None,
    ident: int | None = None,
    interface: int = 0,
    flow: bytes | None = None,
) -> Segment:
    """A segment of the connection between A (direction 0) and B."""
    ident = next(_idents) if ident is None else ident
    flow = flow or (BACK if direction else FLOW)
    return Segment(
        packet=number,
        time_ns=START_NS + int(ms * 1_000_000),
        file=0,
        at=1000 * number,
        flow=flow,
        seq=seq & 0xFFFF_FFFF,
        ack=ack & 0xFFFF_FFFF,
        flags=flags,
        payload=payload,
        length=len(payload) if length is None else length,
        copy=fingerprint(
            flow or (BACK if direction else FLOW), seq, ack, ident, len(payload), flags
        ),
        interface=interface,
    )


def fed(segments: Iterable[Segment], finish: bool = True) -> list[StreamEvent]:
    reassembler = Reassembler()
    out = [event for each in segments for event in reassembler.feed(each)]
    return out + (reassembler.finish() if finish else [])


def told(events: Iterable[StreamEvent]) -> list[str]:
    """Events as short lines: `0 +5 b'data'`, `1 gap 10 lost`, `0 fin`."""
    lines = []
    for event in events:
        match event:
            case Opened():
                lines.append(f"open {event.connection.a} {event.connection.b}")
            case Chunk():
                lines.append(f"{event.direction} +{event.offset} {event.data!r}")
            case Gap():
                lines.append(f"{event.direction} gap +{event.offset} {event.size} {event.reason}")
            case Closed():
                lines.append(f"{event.direction} {event.how}")
    return lines


def bytes_of(events: Iterable[StreamEvent]) -> dict[str, bytes]:
    """The bytes of each direction, by its sender; holes are left out."""
    found: dict[str, bytes] = defaultdict(bytes)
    for event in events:
        if isinstance(event, Chunk):
            connection = event.connection
            found[str((connection.a, connection.b)[event.direction])] += event.data
    return dict(found)


def joined(events: Iterable[StreamEvent]) -> list[list[Any]]:
    """Events as plain values, adjacent chunks as one."""
    out: list[list[Any]] = []
    opened = []
    for event in events:
        number = event.connection.number
        match event:
            case Opened():
                opened.append(event.connection)
                out.append(["open", number])
            case Chunk():
                pieces = [(p.start + event.offset, *p[1:]) for p in event.pieces]
                last = out[-1]
                if last[:3] == ["chunk", number, event.direction] and (
                    last[3] + len(last[4]) == event.offset
                ):
                    last[4] += event.data
                    last[5] += pieces
                else:
                    out.append(["chunk", number, event.direction, event.offset, event.data, pieces])
            case Gap():
                where = [event.offset, event.size, event.reason, event.time_ns]
                out.append(["gap", number, event.direction, *where])
            case Closed():
                how = [event.how, event.time_ns, event.used]
                out.append(["closed", number, event.direction, *how])
    for connection in opened:
        out.append(connection.__getstate__())
    return out


class Tape:
    """A capture in the making: frames with times."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, bytes]] = []
        self.now_ns = START_NS

    def add(self, frames: Iterable[bytes], step_ns: int = 20_000) -> None:
        for frame in frames:
            self.frames.append((self.now_ns, frame))
            self.now_ns += step_ns

    def pcap(
        self, *, order: str = "<", nano: bool = True, link_type: int = 1, snaplen: int = 262144
    ) -> bytes:
        magic = 0xA1B23C4D if nano else 0xA1B2C3D4
        out = [pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link_type)]
        for time_ns, frame in self.frames:
            seconds, fraction = divmod(time_ns, 1_000_000_000)
            size = min(len(frame), snaplen)
            fraction = fraction if nano else fraction // 1000
            out.append(pack(order + "IIII", seconds, fraction, size, len(frame)) + frame[:size])
        return b"".join(out)

    def pcapng(self, comment: str = "") -> bytes:
        sink = BytesIO()
        writer = PcapngWriter(sink)
        writer.interface("lo", comment=comment)
        for time_ns, frame in self.frames:
            writer.packet(frame, time_ns)
        return sink.getvalue()

    def packets(self) -> Iterator[Packet]:
        for number, (time_ns, frame) in enumerate(self.frames, 1):
            yield packet(frame, time_ns, number)


def conversation(rounds: int = 3, size: int = 4000, **options: Any) -> Tape:
    """Handshake, requests and answers, both FINs."""
    tape, composer = Tape(), Composer(A, B, **options)
    tape.add(composer.open())
    for index in range(rounds):
        tape.add(composer.send(0, bytes([index & 255]) * size))
        tape.add(composer.send(1, bytes([255 - index & 255]) * (size // 2)))
    tape.add(composer.close(0))
    tape.add(composer.close(1))
    return tape


def records_of(pcap: bytes) -> list[bytes]:
    """The packets of a pcap file behind its 24 bytes, each with its header."""
    found, at = [], 24
    while at < len(pcap):
        size = 16 + int.from_bytes(pcap[at + 8 : at + 12], "little")
        found.append(pcap[at : at + size])
        at += size
    return found


class Trickle:
    """A stream that gives what it has in portions."""

    def __init__(self, data: bytes, portions: Iterable[int] = ()) -> None:
        self._data, self._portions = data, iter(portions)

    def readinto(self, buffer: memoryview, /) -> int | None:
        size = min(next(self._portions, len(buffer)), len(buffer), len(self._data))
        buffer[:size] = self._data[:size]
        self._data = self._data[size:]
        return size

    def close(self) -> None:
        pass


def read(
    data: bytes,
    *,
    bulk: bool | None = None,
    portions: Iterable[int] = (),
    limits: CaptureLimits = LIMITS,
) -> tuple[list[StreamEvent], Source, str]:
    """All events of a capture in memory, its source, and what was wrong with it."""
    source = Source(["test"], None, {0: Trickle(data, portions)})
    events: list[StreamEvent] = []
    try:
        events.extend(streams(source, bulk=bulk, limits=limits))
    except CutShort as error:
        return events, source, str(error)
    return events, source, ""


def segments_of(packets: Iterable[Packet]) -> list[Segment]:
    found = [segment_of(each) for each in packets]
    return [each for each in found if isinstance(each, Segment)]


FRAME = bytes(range(60))


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) & 3)
    size = pack(order + "I", len(body) + 12)
    return pack(order + "I", kind) + size + body + size


def section(order: str) -> bytes:
    return block(order, 0x0A0D0D0A, pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, link: int = 1, snaplen: int = 0, **options: bytes) -> bytes:
    codes = {"comment": 1, "name": 2, "description": 3, "tsresol": 9, "tsoffset": 14}
    body = pack(order + "HHI", link, 0, snaplen)
    for name, value in options.items():
        body += pack(order + "HH", codes[name], len(value)) + value + bytes(-len(value) & 3)
    return block(order, 1, body + bytes(4))


def enhanced(order: str, ticks: int, number: int = 0, frame: bytes = FRAME) -> bytes:
    head = pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
    return block(order, 6, head + frame)


ETHER = bytes(12) + b"\x08\0"


def ip4(payload: bytes, protocol: int = 6, ident: int = 7, field: int = 0) -> bytes:
    head = pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), ident, field, 64, protocol, 0)
    return head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + payload


def tcp(data: bytes, flags: int = 0x18, seq: int = 1000) -> bytes:
    return pack(">HHIIBBHHH", 40000, 9092, seq, 5, 0x50, flags, 1000, 0, 0) + data


def fragments4(whole: bytes, size: int, protocol: int = 6, ident: int = 7) -> list[bytes]:
    """The payload of an IPv4 packet, cut every `size` bytes."""
    cuts = range(0, len(whole), size)
    fields = [(0x2000 if at + size < len(whole) else 0) | at >> 3 for at in cuts]
    parts = [whole[at : at + size] for at in cuts]
    return [
        ETHER + ip4(part, protocol, ident, field) for part, field in zip(parts, fields, strict=True)
    ]


def opener(data: bytes) -> Callable[[str, int], Trickle]:
    return lambda name, start: Trickle(data[start:])


def whole(data: bytes) -> tuple[list[Packet], list[str], list[FileGap]]:
    source = Source(["x"], None, {0: Trickle(data)})
    found: list[Packet] = []
    try:
        found.extend(source.packets())
    except CutShort:
        pass
    return found, [str(each) for each in source.statistics.damage], source.gaps[0]


def written(packets: Iterable[Packet], piece: Path, *secrets: bytes) -> Path:
    """A capture of packets as they are, with key logs before them."""
    known: dict[int, int] = {}
    with piece.open("wb") as file:
        writer = PcapngWriter(file)
        for log in secrets:
            writer.secrets(log)
        for each in packets:
            if each.link_type not in known:
                known[each.link_type] = writer.interface("lo", link_type=each.link_type)
            interface = known[each.link_type]
            writer.packet(each.data, each.time_ns, interface=interface, length=each.length)
    return piece


def capture_file(
    path: Path,
    frames: Sequence[tuple[str, bytes]],
    *,
    snaplen: int | None = None,
    mirrored: bool = False,
    port: int = BROKER.port,
    only: str = "",
    handshake: bool = True,
) -> Path:
    """Write a capture of ("client" or "broker", bytes), a millisecond apart; `only`: the side
    whose packets are in it; `mirrored`: what sent the packets here has cut them to `snaplen`;
    without `handshake` the capture began late."""
    composer = Composer(CLIENT, BROKER._replace(port=port))
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.interface("eth0")
        time_ns = START
        for packet in composer.open():
            if handshake and (not only or _is_of(only, packet)):
                writer.packet(packet, time_ns)
        for side, data in frames:
            time_ns += MS
            for packet in composer.send(0 if side == "client" else 1, data):
                if not only or _is_of(only, packet):
                    kept = packet[:snaplen]
                    writer.packet(kept, time_ns, length=len(kept if mirrored else packet))
    return path


def _is_of(side: str, packet: bytes) -> bool:
    """Return whether a side sent a packet, by the source port of TCP in IPv4 in Ethernet."""
    return (int.from_bytes(packet[34:36], "big") == CLIENT.port) == (side == "client")


def late_names(path: Path) -> Path:
    """A Fetch by topic id, and Metadata that tells its name."""
    topic_id = Uuid(range(1, 17))
    topics = [{"topic_id": topic_id, "partitions": [{"partition_max_bytes": 1}]}]
    named = [{"name": "orders", "topic_id": topic_id, "topic_authorized_operations": 0}]
    frames = [
        ("client", request("Fetch", 13, 1, topics=topics)),
        ("broker", response("Fetch", 13, 1)),
        ("client", request("Metadata", 12, 2)),
        ("broker", response("Metadata", 12, 2, topics=named)),
        ("client", heartbeat(3)),
        ("broker", beat(3)),
    ]
    return capture_file(path, frames)


def session_of(capture: OpenInput) -> Session:
    """Return all exchanges of a capture as columns."""
    session = Session(capture.context, capture.source.read, plaintext=capture.plaintext)
    for items in capture.batches():
        session.extend(items)
    return session
