"""Where the time of each exchange went, from fields of tshark: times, sequence numbers, windows.

It puts streams together itself, knows of Kafka the first bytes of a frame, and shares no code with
the program, so that the two can be compared.
"""

import struct
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

FIELDS = (
    *("tcp.stream", "frame.time_epoch", "tcp.srcport", "tcp.dstport", "tcp.flags.syn"),
    *("tcp.seq", "tcp.window_size", "tcp.payload"),
)


class Segment(NamedTuple):
    """A packet of one connection; `start` is where its data is in the stream of its sender."""

    time_ms: float
    from_client: bool
    syn: bool
    start: int
    window: int
    data: bytes

    def holds(self, part: range) -> bool:
        return self.start < part.stop and self.start + len(self.data) > part.start


class Measured(NamedTuple):
    """One exchange as a capture point sees it; times in milliseconds."""

    port: int
    correlation_id: int
    api_key: int
    request: bytes
    response: bytes
    request_transfer_ms: float
    server_ms: float
    """Last byte of the request, when it was first seen, to first byte of the response; away from
    the broker with the round trip."""
    wait_ms: float
    """Last packet of the request, sent again or not, to first byte of the response."""
    response_transfer_ms: float
    rtt_ms: float
    """From the point to the broker and back: SYN to SYN-ACK."""
    retransmissions: int
    zero_window_ms: float


def measured(capture: Path, broker_port: int) -> list[Measured]:
    """All exchanges of a capture that were answered."""
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-E", "separator=/s"]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    connections: dict[str, list[Segment]] = defaultdict(list)
    ports: dict[str, int] = {}
    for line in done.stdout.splitlines():
        stream, time, source, target, syn, sequence, window, payload = line.split(" ")
        from_client = int(target) == broker_port
        ports[stream] = int(source if from_client else target)
        connections[stream].append(
            Segment(
                float(time) * 1000,
                from_client,
                syn in ("1", "True"),
                int(sequence) - 1,  # tshark counts from the SYN
                int(window),
                bytes.fromhex(payload),
            )
        )
    return [
        each for stream, found in connections.items() for each in _exchanges(ports[stream], found)
    ]


def _exchanges(port: int, segments: Sequence[Segment]) -> Iterator[Measured]:
    requests, responses = (_stream(segments, side) for side in (True, False))
    answers = {
        int.from_bytes(responses[part.start + 4 : part.start + 8], signed=True): part
        for part in _frames(responses)
    }
    syn, synack = (
        next(s.time_ms for s in segments if s.syn and s.from_client is side)
        for side in (True, False)
    )
    again = _again(segments)
    closed = _closed_windows(segments)
    for request in _frames(requests):
        api_key, _, correlation_id = struct.unpack_from(">hhi", requests, request.start + 4)
        if correlation_id not in answers:
            continue
        response = answers[correlation_id]
        answering = [s.time_ms for s in segments if not s.from_client and s.holds(response)]
        asking = [s for s in segments if s.from_client and s.holds(request)]
        before = [s.time_ms for s in asking if s.time_ms < answering[0]]
        begin, end = before[0], answering[-1]
        yield Measured(
            port,
            correlation_id,
            api_key,
            requests[request.start : request.stop],
            responses[response.start : response.stop],
            request_transfer_ms=before[-1] - begin,
            server_ms=answering[0] - _complete(asking, request),
            wait_ms=answering[0] - before[-1],
            response_transfer_ms=end - answering[0],
            rtt_ms=synack - syn,
            retransmissions=sum(
                begin <= s.time_ms <= end and s.holds(request if s.from_client else response)
                for s in again
            ),
            zero_window_ms=sum(max(0.0, min(b, end) - max(a, begin)) for a, b in closed),
        )


def _stream(segments: Sequence[Segment], from_client: bool) -> bytes:
    stream = bytearray()
    for one in sorted((s for s in segments if s.from_client is from_client), key=lambda s: s.start):
        if one.data:
            if one.start > len(stream):
                raise ValueError(f"{one.start - len(stream)} bytes are missing")
            stream[one.start : one.start + len(one.data)] = one.data
    return bytes(stream)


def _frames(stream: bytes) -> Iterator[range]:
    at = 0
    while at + 4 <= len(stream):
        end = at + 4 + int.from_bytes(stream[at : at + 4])
        if end > len(stream):
            return
        yield range(at, end)
        at = end


def _again(segments: Sequence[Segment]) -> list[Segment]:
    """Segments with bytes that were seen before."""
    seen: dict[bool, set[int]] = {True: set(), False: set()}
    found = []
    for one in segments:
        positions = range(one.start, one.start + len(one.data))
        if not seen[one.from_client].isdisjoint(positions):
            found.append(one)
        seen[one.from_client].update(positions)
    return found


def _complete(asking: Sequence[Segment], request: range) -> float:
    """When the last byte of a request had been seen."""
    missing = set(request)
    for one in asking:
        missing -= set(range(one.start, one.start + len(one.data)))
        if not missing:
            return one.time_ms
    raise ValueError("a request is not whole")


def _closed_windows(segments: Sequence[Segment]) -> list[tuple[float, float]]:
    """From and to when a receive window of 0 was announced, by either side."""
    found = []
    for side in (True, False):
        since: float | None = None
        for one in segments:
            if one.from_client is side and one.window == 0 and since is None:
                since = one.time_ms
            elif one.from_client is side and one.window and since is not None:
                found.append((since, one.time_ms))
                since = None
        if since is not None:
            found.append((since, segments[-1].time_ms))
    return found
