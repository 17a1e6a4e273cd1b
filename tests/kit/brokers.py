"""A broker in a thread that answers every request somehow: with blank answers, or badly."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError

Answer = Callable[[bytes, int], bytes | None]
"""(request's payload, own port) -> answer with its size; None: say nothing, b"": hang up."""


def blank(payload: bytes, port: int) -> bytes | None:
    """All versions of all APIs, one node, any topic that is asked for, defaults for the rest."""
    head = registry.read_request_header(payload)
    version = head.api_version
    api = registry.APIS.get(head.api_key)
    if api is None or version not in api.versions:
        return b""
    try:
        asked = registry.decode_request(payload).body
    except DissectError:
        return b""
    if api.name == "Produce" and asked["acks"] == 0:
        return None
    body = _filled(api.name, version, asked, port)
    header = registry.layout_of(
        "ResponseHeader", registry.response_header_version(head.api_key, version)
    )
    answer = registry.write_layout(header, {"correlation_id": head.correlation_id})
    answer += registry.write_layout(registry.layout_of(f"{api.name}Response", version), body)
    return struct.pack(">i", len(answer)) + answer


def _filled(api: str, version: int, asked: Body, port: int) -> Body:
    body = registry.example(f"{api}Response", version)
    if api == "ApiVersions":
        blank = {"min_version": 0}
        body["api_keys"] = [
            {**blank, "api_key": key, "max_version": each.versions.high}
            for key, each in registry.APIS.items()
        ]
    elif api == "Metadata":
        node: dict[str, Any] = {"node_id": 1, "host": "127.0.0.1", "port": port, "rack": None}
        names = {slot.name for slot in _slots("MetadataResponse", version, "brokers")}
        body["brokers"] = [{name: node[name] for name in names}]
        topics = [each["name"] for each in asked["topics"] or () if each["name"]]
        body["topics"] = [_topic(version, name) for name in topics]
    elif api == "FindCoordinator" and version >= 4:
        slots = _slots("FindCoordinatorResponse", version, "coordinators")
        values = {"node_id": 1, "host": "127.0.0.1", "port": port, "error_code": 0}
        body["coordinators"] = [
            {
                slot.name: values.get(slot.name, key if slot.name == "key" else None)
                for slot in slots
            }
            for key in asked["coordinator_keys"]
        ]
    elif api == "FindCoordinator":
        body |= {"node_id": 1, "host": "127.0.0.1", "port": port}
    return body


def _slots(message: str, version: int, array: str) -> Any:
    slots = {slot.name: slot for slot in registry.layout_of(message, version).body.slots}
    return slots[array].wire.element.slots  # type: ignore[union-attr]


def _topic(version: int, name: str) -> Body:
    slots = _slots("MetadataResponse", version, "topics")
    topic = {slot.name: slot.default for slot in slots} | {"name": name, "error_code": 0}
    (parts,) = (slot for slot in slots if slot.name == "partitions")
    blank = {slot.name: slot.default for slot in parts.wire.element.slots}
    topic["partitions"] = [
        {**blank, "partition_index": n, "leader_id": 1, "error_code": 0} for n in range(2)
    ]
    if "topic_id" in topic:
        topic["topic_id"] = name.encode().ljust(16, b"\0")[:16]
    return topic


def bad_answer(kind: str, after: int) -> Answer:
    """The first `after` answers are fine, then something else comes."""
    left = [after]

    def answer(payload: bytes, port: int) -> bytes | None:
        left[0] -= 1
        if left[0] >= 0:
            return blank(payload, port)
        number = payload[4:8]
        return {
            "garbage": struct.pack(">i", 30) + number + b"\xff" * 26,
            "huge": struct.pack(">i", 2**31 - 1) + number,
            "negative": struct.pack(">i", -7) + number,
            "empty": struct.pack(">i", 4) + number,
            "other": struct.pack(">i", 4) + b"\x12\x34\x56\x78",
            "silent": None,
            "closed": b"",
        }[kind]

    return answer


@contextmanager
def broker(answer: Answer) -> Iterator[int]:
    """Its port on loopback."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    open_: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        file = connection.makefile("rb")
        try:
            while len(size := file.read(4)) == 4:
                payload = file.read(struct.unpack(">i", size)[0])
                said = answer(payload, port)
                if said == b"":
                    break
                if said is not None:
                    connection.sendall(said)
        except (OSError, ValueError):
            pass
        finally:
            file.close()
            connection.close()

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_.append(connection)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield port
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in open_:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        time.sleep(0.01)
