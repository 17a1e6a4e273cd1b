"""Encrypted captures against their truth files: see `captures/tls/README.md` beside this."""

from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.model import Frame
from kafkascope.captures.model import Closed, Connection, Opened

WAYS = ("client_to_server", "server_to_client")


class Encrypted(NamedTuple):
    """A connection, and the frames of Kafka in it by direction."""

    connection: Connection
    frames: tuple[list[Frame], list[Frame]]

    def side(self, client: int) -> int:
        """Return the direction of the side with this port."""
        return 0 if self.connection.a.port == client else 1

    def text(self, direction: int) -> bytes:
        """Return what was sent, as far as frames tell."""
        frames = sorted(self.frames[direction], key=attrgetter("offset"))
        return b"".join(frame.size.to_bytes(4, "big") + frame.payload for frame in frames)


def read(capture: Path, *logs: Path) -> dict[int, Encrypted]:
    """Read a capture with key logs; its connections by the ports of both their sides."""
    connections: dict[int, Connection] = {}
    frames: dict[int, tuple[list[Frame], list[Frame]]] = defaultdict(lambda: ([], []))

    def saw(event: Opened | Closed) -> None:
        connections[event.connection.number] = event.connection

    with open_capture([capture], keylog=logs) as opened:
        opened.watch = saw
        for exchange in opened.exchanges():
            connection = exchange.connection
            asks = 0 if connection.a == exchange.client else 1
            for message, direction in ((exchange.request, asks), (exchange.response, 1 - asks)):
                if message is not None:
                    frames[connection.number][direction].append(message.frame)
    found = [Encrypted(each, frames[number]) for number, each in connections.items()]
    return {end.port: each for each in found for end in (each.connection.a, each.connection.b)}


def differences(capture: Path, truth: dict[str, Any]) -> Iterator[str]:
    """Sentences about connections whose plaintext is not what tshark says."""
    logs = [] if truth.get("keys_inside") else [capture.parent / truth["keys"]]
    found = read(capture, *logs)
    lossy = "best_possible_app_bytes" in truth
    for told in truth["tls_connections"]:
        client = told["client_port"]
        one = found[client]
        tls = one.connection.tls
        if tls is None:
            if told.get("version"):
                yield f"{client}: not seen as TLS"
            continue
        if told.get("version") and (tls.version, tls.suite, tls.resumed) != (
            told["version"],
            told["cipher_suite"],
            told["resumed"],
        ):
            yield f"{client}: {tls.version} {tls.suite}, resumed {tls.resumed}"
        if not told["decrypted"]:
            if told.get("client_random") and any(tls.decrypted):
                yield f"{client}: plaintext without a key"
            continue
        if tls.error and not lossy:
            yield f"{client}: {tls.error}: {tls.note}"
        kafka = told["kafka_frames"]["requests"]
        left = told["kafka_frames"].get("bytes_after_last_whole_frame", 0)
        for way, direction in zip(WAYS, (one.side(client), 1 - one.side(client)), strict=True):
            size, expected = tls.decrypted[direction], told["app_bytes"][way]
            if size < expected or (size > expected and not (lossy and tls.error)):
                yield f"{client}, {way}: {size} bytes, tshark has {expected}"
                continue
            text = one.text(direction)
            if len(text) < size and size - len(text) <= left:
                continue  # who left did not wait for the rest of an answer
            digest = sha256(text).hexdigest()
            if kafka and not tls.error and digest != told["app_sha256"][way]:
                yield f"{client}, {way}: other bytes than tshark's"
