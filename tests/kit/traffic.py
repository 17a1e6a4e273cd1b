"""Captures of Kafka traffic made of a seed, with all that goes wrong on networks and in files."""

import gzip
from collections.abc import Callable
from pathlib import Path
from random import Random

from kafkascope.captures.build import Composer
from kafkascope.captures.model import Endpoint
from tests.kit import wire
from tests.kit.captures import START_NS, Tape, block, enhanced, interface, section

MS = 1_000_000
PORTS = (9092, 9092, 19092, 443)
TOPIC_ID = bytes(range(16))


def frames_of(rng: Random, count: int) -> list[tuple[int, bytes]]:
    """Bytes of one connection in turn: (direction, bytes)."""
    out: list[tuple[int, bytes]] = []
    client = rng.choice(["app", "orders", None])
    waiting: list[tuple[str, int, int]] = []
    for number in range(count):
        api, version = rng.choice(
            [("Heartbeat", 3), ("Metadata", 12), ("Fetch", 13), ("Produce", 7), ("ApiVersions", 3)]
        )
        if api == "Produce":
            acks = rng.choice([-1, 1, 0])
            out.append((0, wire.produce(number, acks, rng.randbytes(rng.randrange(0, 3000)))))
            if acks:
                waiting.append((api, version, number))
        else:
            out.append((0, wire.request(api, version, number, client)))
            waiting.append((api, version, number))
        while waiting and rng.random() < 0.7:
            api, version, id_ = waiting.pop(0)
            out.append((1, wire.response(api, version, id_)))
    for api, version, id_ in waiting[: rng.randrange(len(waiting) + 1)]:
        out.append((1, wire.response(api, version, id_)))
    return out


def connection(
    rng: Random,
    start_ns: int,
    ports: tuple[int, int],
    bytes_of: Callable[[Random], list[tuple[int, bytes]]] | None = None,
) -> list[tuple[int, bytes]]:
    """The packets of one connection with their times. `bytes_of`: makes what both ends send."""
    v6 = rng.random() < 0.25
    hosts = ("fe80::1", "fe80::2") if v6 else ("10.0.0.4", "10.0.1.2")
    ends = [Endpoint(host, port) for host, port in zip(hosts, ports, strict=True)]
    isn = (rng.randrange(1 << 32), rng.randrange(1 << 32))
    composer = Composer(*ends, mss=rng.choice([100, 1460, 9000]), isn=isn)
    now = start_ns
    packets: list[tuple[int, bytes]] = []

    def add(made: list[bytes]) -> None:
        nonlocal now
        for each in made:
            now += rng.choice([10_000, 200_000, 5 * MS, 60 * MS])
            packets.append((now, each))

    add(composer.open())
    if bytes_of is None and rng.random() < 0.15:
        add(composer.send(0, b"\x16\x03\x01\x02\x00" + rng.randbytes(300)))
        add(composer.send(1, b"\x16\x03\x03" + rng.randbytes(500)))
    else:
        frames = frames_of(rng, rng.randrange(1, 12)) if bytes_of is None else bytes_of(rng)
        for direction, data in frames:
            add(composer.send(direction, data, ack=rng.random() < 0.8))
            now += rng.choice([0, 0, 0, 150 * MS, 3000 * MS])
    ending = rng.random()
    if ending < 0.4:
        add(composer.close(0) + composer.close(1))
    elif ending < 0.5:
        add(composer.reset(rng.randrange(2)))
    if rng.random() < 0.25:
        packets = packets[rng.randrange(len(packets)) :]
    if rng.random() < 0.3:
        tag = rng.choice([b"\x81\x00\x00\x05", b"\x88\xa8\x00\x07\x81\x00\x00\x05"])
        packets = [(time_ns, each[:12] + tag + each[12:]) for time_ns, each in packets]
    return packets


def network(rng: Random, packets: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Loss, repetition and disorder."""
    kind = rng.choice(["good", "good", "loss", "late", "order", "twice", "all"])
    out = []
    for time_ns, each in packets:
        bad = rng.random() < 0.08
        if bad and kind in ("loss", "all"):
            continue
        if bad and kind in ("late", "all"):
            # Sent again, when the capture has long given up, or just before.
            time_ns += rng.choice([30, 120, 300, 2500]) * MS
        out.append((time_ns, each))
        if bad and kind in ("twice", "all"):
            out.append((time_ns + rng.choice([1000, 300 * MS]), each))
    if kind in ("order", "all"):
        for index in range(len(out) - 1):
            if rng.random() < 0.1:
                (a, x), (b, y) = out[index], out[index + 1]
                out[index], out[index + 1] = (a, y), (b, x)
    return out


def tape(seed: int) -> Tape:
    """Several connections at once, two of them with the same ports."""
    rng = Random(seed)
    made = Tape()
    packets: list[tuple[int, bytes]] = []
    start = START_NS
    client = 40000
    for _ in range(rng.randrange(1, 6)):
        if rng.random() < 0.7:
            client += 1
        packets += network(rng, connection(rng, start, (client, rng.choice(PORTS))))
        start += rng.choice([0, 10 * MS, 4000 * MS])
    made.frames = sorted(packets, key=lambda each: each[0])
    return made


def files(seed: int, folder: Path) -> list[str]:
    """The capture as files of some format, some of them damaged."""
    rng = Random(seed ^ 0x5EED)
    whole = tape(seed).frames
    parts = rng.choice([1, 1, 2, 3])
    step = -(-len(whole) // parts) or 1
    names = []
    for number in range(0, len(whole), step):
        part = Tape()
        part.frames = whole[number : number + step]
        kind = rng.choice(["micro", "nano", "pcapng", "sections"])
        if kind in ("micro", "nano"):
            data = part.pcap(nano=kind == "nano", order=rng.choice("<>"))
        elif kind == "pcapng":
            data = part.pcapng()
        else:
            data = _sections(rng, part)
        if rng.random() < 0.15:
            data = data[: rng.randrange(60, len(data) + 1)]
        for _ in range(rng.choice([0, 0, 0, 1, 3]) if len(data) > 200 else 0):
            at, size = rng.randrange(100, len(data)), rng.choice([1, 3, 16, 200])
            new = rng.choice([rng.randbytes(size), bytes(size), b""])
            data = data[:at] + new + data[at + size :]
        path = folder / f"{number:04}.pcap"
        if rng.random() < 0.2:
            data = gzip.compress(data)
        path.write_bytes(data)
        names.append(str(path))
    return names


def _sections(rng: Random, part: Tape) -> bytes:
    out = []
    order = "<"
    known = 0
    for time_ns, frame in part.frames:
        if not out or rng.random() < 0.1:
            order, known = rng.choice("<>"), 1
            out += [section(order), interface(order, tsresol=b"\x09")]
        if rng.random() < 0.1:
            known += 1
            out.append(interface(order, tsresol=b"\x09"))
        if rng.random() < 0.1:
            out.append(block(order, 0x77, bytes(20)))
        out.append(enhanced(order, time_ns, rng.randrange(known), frame))
    return b"".join(out)


def overlapping(seed: int, folder: Path) -> list[str]:
    """Connections in several captures at the same time, on usual ports: which endpoints are brokers
    does not depend on what others said before."""
    rng = Random(seed)
    tapes = [Tape() for _ in range(rng.randrange(2, 4))]
    start = START_NS
    for number in range(rng.randrange(2, 9)):
        kept = network(rng, connection(rng, start, (40000 + number, 9092)))
        tapes[rng.randrange(len(tapes))].frames += kept
        start += rng.choice([0, 10 * MS, 1000 * MS])
    names = []
    for number, part in enumerate(tapes):
        if part.frames:
            part.frames.sort(key=lambda each: each[0])
            path = folder / f"{number}.pcap"
            path.write_bytes(part.pcap(nano=True))
            names.append(str(path))
    return names


Frames = list[tuple[int, bytes]]


def in_order(seed: int) -> Frames:
    """Traffic with a time of its own for each packet."""
    frames: Frames = []
    for time_ns, frame in sorted(tape(seed).frames, key=lambda each: each[0]):
        frames.append((max(time_ns, frames[-1][0] + 1000 if frames else 0), frame))
    return frames


def mixed(rng: Random, frames: Frames, window_ns: int) -> Frames:
    """The frames as several writers leave them: each in its order, in bursts; or each late by
    some time."""
    if rng.random() < 0.5:
        writers = rng.randrange(2, 5)
        found = [((time_ns // window_ns, rng.randrange(writers)), time_ns) for time_ns, _ in frames]
    else:
        found = [((time_ns + rng.randrange(window_ns), 0), time_ns) for time_ns, _ in frames]
    return [frame for _, frame in sorted(zip(found, frames, strict=True))]


def written(frames: Frames, path: Path, interfaces: int = 0) -> str:
    made = Tape()
    made.frames = frames
    data = made.pcap()
    if interfaces:
        clock = {"tsresol": b"\t"}
        blocks = [section("<"), *(interface("<", **clock) for _ in range(interfaces))]
        for number, (time_ns, frame) in enumerate(frames):
            blocks.append(enhanced("<", time_ns, number % interfaces, frame))
        data = b"".join(blocks)
    path.write_bytes(data)
    return str(path)


def bursts(frames: Frames, window_ns: int) -> Frames:
    """Each direction as an interface of its own, which writes what it has now and then."""
    source = [frame[26:30] for _, frame in frames]
    order = sorted(range(len(frames)), key=lambda at: (frames[at][0] // window_ns, source[at]))
    return [frames[at] for at in order]
