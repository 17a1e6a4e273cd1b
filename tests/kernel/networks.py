"""Generated networks with logins and TLS, and what is read of captures.

    python -m tests.kernel.networks CAPTURE...

prints, for each capture, a hash of all lines of `ls --json`; the key log lies beside it (`.keys`).
"""

import ssl
import sys
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.pairs import Rows
from tests.kit import wire
from tests.kit.captures import START_NS, Tape
from tests.kit.traffic import connection, frames_of, network

MS = 1_000_000
BROKERS = (9092, 9093, 19094)


Messages = list[tuple[int, bytes]]
"""Direction and bytes of each."""


def login(rng: Random) -> Messages:
    """What both ends of a connection with a SASL login send."""
    asked: list[tuple[str, int, dict[str, Any]]] = [
        ("ApiVersions", 3, {}),
        ("SaslHandshake", 1, {"mechanism": "PLAIN"}),
    ]
    asked.append(("SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0secret"}))
    out = []
    for number, (api, version, fields) in enumerate(asked, 1000):
        out.append((0, wire.request(api, version, number, "app", **fields)))
        out.append((1, wire.response(api, version, number)))
    return out + frames_of(rng, rng.randrange(1, 14))


def some_frames(rng: Random) -> Messages:
    return frames_of(rng, rng.randrange(1, 14))


def encrypted(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], say: Callable[[Random], Messages], rng: Random
) -> Messages:
    """The same inside TLS, behind its handshake."""
    (one_in, one_out), (two_in, two_out) = ((ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2))
    client = contexts[0].wrap_bio(one_in, one_out)
    server = contexts[1].wrap_bio(two_in, two_out, server_side=True)
    out: Messages = []

    def carry() -> None:
        for direction, source, target in ((0, one_out, two_in), (1, two_out, one_in)):
            if data := source.read():
                out.append((direction, data))
                target.write(data)

    for _ in range(4):
        for end in (client, server):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
            carry()
    for direction, data in say(rng):
        sender, taker = (client, server) if direction == 0 else (server, client)
        sender.write(data)
        carry()
        while True:
            try:
                taker.read(1 << 16)
            except ssl.SSLWantReadError:
                break
    return out


def contexts(certificate: Path, log: Path, newest: bool) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Client and server; the client writes the key log."""
    client, server = map(ssl.SSLContext, (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER))
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    server.load_cert_chain(certificate)
    client.maximum_version = ssl.TLSVersion.TLSv1_3 if newest else ssl.TLSVersion.TLSv1_2
    client.keylog_filename = str(log)
    return client, server


def disturbed(rng: Random, packets: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the same packets; some close a receive window, some are sent again."""
    for time_ns, frame in packets:
        at = 14
        while frame[at - 2 : at] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        v6 = frame[at - 2 : at] == b"\x86\xdd"
        window = at + (40 if v6 else 20) + 14
        if rng.random() < 0.1:
            frame = frame[:window] + b"\0\0" + frame[window + 2 :]
        yield time_ns, frame
        while not v6 and rng.random() < 0.2:
            time_ns += rng.choice([5_000, 200_000, 30 * MS, 250 * MS, 2900 * MS, 3100 * MS])
            yield time_ns, frame[: at + 4] + rng.randbytes(2) + frame[at + 6 :]


def write(seed: int, folder: Path, certificate: Path) -> Path:
    """Write a network of some connections to some brokers: plain, with logins, inside TLS; with
    gaps, repetition, disorder, from the middle on."""
    rng, path = Random(seed), folder / f"{seed}.pcap"
    tape, start = Tape(), START_NS
    packets: list[tuple[int, bytes]] = []
    for number in range(rng.randrange(1, 6)):
        kind = rng.choice(["plain", "plain", "login", "tls", "tls and login"])
        say = login if kind == "login" else None
        if kind.startswith("tls"):
            both = contexts(certificate, path.with_suffix(".keys"), rng.random() < 0.6)
            say = partial(encrypted, both, login if "login" in kind else some_frames)
        ports = 40_000 + number, rng.choice(BROKERS)
        packets += network(rng, connection(rng, start, ports, say))
        start += rng.choice([0, 10 * MS, 4000 * MS])
    tape.frames = sorted(disturbed(Random(seed), packets), key=lambda each: each[0])
    path.write_bytes(tape.pcap(nano=True))
    return path


def keys_of(path: Path) -> list[Path]:
    """The key logs of a capture."""
    log = path.with_suffix(".keys")
    return [log] if log.exists() else []


def lines_of(path: Path) -> list[bytes]:
    """What `ls --json` prints of a capture."""
    with open_capture([path], keylog=keys_of(path)) as capture:
        rows = Rows(capture.context)
        items = [item for batch in capture.batches() for item in batch]
        return rows.json(items).splitlines()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(blake2b(b"\n".join(lines_of(Path(name)))).hexdigest())
