"""Packets and capture files for tests, made in code; and events in a form that can be compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from io import BytesIO
from struct import pack
from typing import Any

from kafkascope.captures import (
    Chunk,
    Closed,
    CutShort,
    Endpoint,
    Gap,
    Opened,
    Packet,
    Reassembler,
    Segment,
    Source,
    StreamEvent,
    segment_of,
    streams,
)
from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.captures.packets.tcp import ACK, fingerprint

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
    return Segment(
        packet=number,
        time_ns=START_NS + int(ms * 1_000_000),
        file=0,
        at=1000 * number,
        flow=flow or (BACK if direction else FLOW),
        seq=seq & 0xFFFF_FFFF,
        ack=ack & 0xFFFF_FFFF,
        flags=flags,
        payload=payload,
        length=len(payload) if length is None else length,
        copy=fingerprint(direction, seq, ack, ident, len(payload), flags),
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
