"""A conversation in which every text, every bytes field and every uuid of every message has a word
that stands nowhere else: what is redacted may not hold any of them."""

import base64
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.model import Endpoint
from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.walk import UNKNOWN_TAGS
from kafkascope.dissectors.embedded import groups
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    Layout,
    NumberWire,
    Slot,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
    resolve,
)
from kafkascope.dissectors.records.records import Partial, Record, batches, open_batch
from kafkascope.dissectors.records.writer import encode_batch, encode_message_set
from kafkascope.dissectors.values import Uuid
from tests.kit import run

WORD = re.compile(rb"qz\d{6}k")
"""What a word looks like."""
FORMS = ("{}", "User:{}", "/{}", "{0}:{0}:7", "https://{}.example:8083/", "org.apache.kafka.{}")
"""Shapes of texts that are looked into."""

START = 1_700_000_000_000_000_000
CONTROL = 0x20


class Filler:
    """Gives out words; `words` are those that somebody has to hide."""

    def __init__(self, form: str = "{}") -> None:
        self.form = form
        self.count = 0

    def word(self) -> str:
        self.count += 1
        return f"qz{self.count:06}k"

    def text(self) -> str:
        return self.form.format(self.word())

    def uuid(self) -> Uuid:
        return Uuid(self.word().encode().ljust(16, b"\x9c"))

    def body(self, layout: Layout) -> dict[str, Any]:
        return self.struct(layout, layout.body)

    def struct(self, layout: Layout, wire: StructWire) -> dict[str, Any]:
        out = {slot.name: self.value(layout, slot, slot.wire) for slot in (*wire.slots, *wire.tags)}
        if wire.flexible and layout.message.kind != "header":
            out[UNKNOWN_TAGS] = [{"tag": 10_000, "data": self.word().encode()}]
        return out

    def value(self, layout: Layout, slot: Slot, wire: Wire) -> Any:
        match wire:
            case StructWire():
                return self.struct(layout, wire)
            case ArrayWire():
                return [self.value(layout, slot, wire.element)]
            case StringWire():
                return self.text()
            case UuidWire():
                return self.uuid()
            case BytesWire():
                if wire.records:
                    return self.records(layout)
                return self.inside(layout, slot.name)
            case BoolWire():
                return False
            case NumberWire():
                return self.number(slot)
        raise AssertionError(wire)

    def number(self, slot: Slot) -> Any:
        if slot.field.enum == "ErrorCode" or slot.name in ("compression_type", "key_type"):
            return 0
        return 1.5 if isinstance(slot.wire, NumberWire) and slot.wire.code == "d" else 1

    def records(self, layout: Layout) -> bytes:
        first = {"ProduceRequest": (2, 3), "FetchResponse": (2, 4)}.get(layout.message.name, ())
        magic = sum(layout.version >= version for version in first) if first else 2
        key, value, name, header = (self.word().encode() for _ in range(4))
        row = Record(0, 1000, key, value * 9, ((name.decode(), header),))
        if magic < 2:
            return encode_message_set(magic, [row._replace(headers=())], codec=1)
        voters = resolve(registry.message("VotersRecord"), 0)
        control = registry.write_layout(voters, self.body(voters))
        odd = Record(0, 1000, self.word().encode(), self.word().encode(), ())
        rows = [Record(0, 1000, struct.pack(">hh", 0, 6), control, ()), odd._replace(offset=1)]
        return (
            encode_batch([row], codec=4)
            + encode_batch([odd])
            + encode_batch(rows, attributes=CONTROL)
        )

    def inside(self, layout: Layout, name: str) -> bytes:
        """Bytes of the format that the field has, full of words; else a word."""
        place = (layout.message.name, name)
        if name in ("metadata", "member_metadata", "subscription") and "Join" in place[0]:
            return self.version(registry.message("ConsumerProtocolSubscription"))
        if place == ("DescribeGroupsResponse", "member_metadata"):
            return self.version(groups.CONNECT_SUBSCRIPTION)
        if place == ("DescribeGroupsResponse", "member_assignment"):
            return self.version(groups.CONNECT_ASSIGNMENT)
        if name in ("assignment", "member_assignment") and place[0].startswith("Sync"):
            return self.version(registry.message("ConsumerProtocolAssignment"))
        if place == ("ConnectSubscription", "allocation"):
            return self.version(groups.CONNECT_ASSIGNMENT)
        if place == ("ConsumerProtocolSubscription", "user_data"):
            layout = resolve(registry.message("SubscriptionInfoData"), 11)
            return registry.write_layout(layout, self.body(layout) | {"version": 11})
        if place == ("ConsumerProtocolAssignment", "user_data"):
            layout = resolve(groups.STICKY_USER_DATA, 1)
            return registry.write_layout(layout, self.body(layout))
        if place == ("EnvelopeRequest", "request_principal"):
            return self.version(registry.message("DefaultPrincipalData"))
        return self.word().encode()

    def version(self, declared: Any) -> bytes:
        version = declared.versions.high
        layout = resolve(declared, version)
        return struct.pack(">h", version) + registry.write_layout(layout, self.body(layout))


def exchanges(filler: Filler, keys: Iterable[int]) -> Iterator[tuple[int, int, bytes, bytes]]:
    """(key, version, payload of the request, of the response) of every version of these APIs."""
    for key in keys:
        api = registry.APIS[key]
        for version in range(api.versions.low, api.versions.high + 1):
            yield key, version, _request(filler, key, version), _response(filler, key, version)


def _request(filler: Filler, key: int, version: int) -> bytes:
    head = registry.layout_of("RequestHeader", registry.request_header_version(key, version))
    header = filler.body(head) | {
        "request_api_key": key,
        "request_api_version": version,
        "correlation_id": version + 1,
    }
    layout = registry.layout_of(f"{registry.APIS[key].name}Request", version)
    return registry.write_layout(head, header) + registry.write_layout(layout, filler.body(layout))


def _response(filler: Filler, key: int, version: int) -> bytes:
    head = registry.layout_of("ResponseHeader", registry.response_header_version(key, version))
    header = filler.body(head) | {"correlation_id": version + 1}
    layout = registry.layout_of(f"{registry.APIS[key].name}Response", version)
    return registry.write_layout(head, header) + registry.write_layout(layout, filler.body(layout))


def write_capture(path: Path, filler: Filler, keys: Iterable[int]) -> int:
    """A capture with a connection for each version of each API; how many exchanges there are."""
    time_ns, count = START, 0
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.interface(filler.word(), comment=filler.word())
        for count, (_, _, asked, answer) in enumerate(exchanges(filler, keys), 1):
            ends = Endpoint("93.184.216.34", 1024 + count), Endpoint("192.0.2.77", 9092)
            composer = Composer(*ends)
            packets = composer.open()
            for side, payload in enumerate((asked, answer)):
                packets += composer.send(side, struct.pack(">i", len(payload)) + payload)
            for packet in packets:
                time_ns += 1_000_000
                writer.packet(packet, time_ns)
    return count


def leaks(data: bytes) -> list[bytes]:
    """The words in these bytes: as they are, in base64 (uuids), in records that are compressed."""
    return sorted(set(WORD.findall(data)) | _in_base64(data))


_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}")


def _in_base64(data: bytes) -> set[bytes]:
    found: set[bytes] = set()
    for match in _BASE64.finditer(data):
        text = match[0]
        for shift in range(4):
            part = text[shift:].translate(bytes.maketrans(b"-_", b"+/"))
            part = part[: len(part) // 4 * 4]
            found.update(WORD.findall(base64.b64decode(part)))
    return found


def redacted_outputs(path: Path, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes of the files that commands write of a capture where all is hidden:
    `cut.pcapng`, reports, fixtures."""
    run.output("cut", path, "--anonymize", "-o", folder / "cut.pcapng")
    for options in ((), ("--full",)):
        for kind in ("html", "md"):
            report = folder / f"report{''.join(options)}.{kind}"
            run.output("report", path, "--redact", "all", *options, "-o", report)
            assert b"exchange" in report.read_bytes()
    for made in ("made", "made.jsonl"):
        run.output("fixture", path, "--redact", "all", "-o", folder / made)
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            # Reports escape some characters.
            plain = data.replace(b"\\", b"") if file.name.startswith("report") else data
            yield str(file.relative_to(folder)), plain


def leaks_of_capture(path: Path) -> list[bytes]:
    """The words in a capture: in its packets, its streams, and what is compressed in them."""
    found = set(leaks(path.read_bytes()))
    with open_capture([path]) as capture:
        for exchange in capture.exchanges():
            for side in (exchange.request, exchange.response):
                if side is not None:
                    found.update(leaks(side.frame.payload))
                    if side.decoded is not None:
                        found.update(leaks_of_records(side.decoded.body))
    return sorted(found)


def leaks_of_records(value: Any) -> set[bytes]:
    """The words in all records inside a body."""
    if isinstance(value, dict):
        return set().union(*map(leaks_of_records, value.values()))
    if isinstance(value, list):
        return set().union(*map(leaks_of_records, value))
    if not isinstance(value, bytes) or isinstance(value, Uuid) or len(value) < 17:
        return set()
    found: set[bytes] = set()
    try:
        for batch in batches(value):
            if not isinstance(batch, Partial):
                found.update(WORD.findall(repr(open_batch(value, batch).records).encode()))
    except Exception:  # bytes of something else
        pass
    return found


BASE64 = re.compile(rb"[A-Za-z0-9+/]{8,}={0,2}")


def unpadded(data: bytes) -> Iterator[bytes]:
    for match in BASE64.findall(data):
        text = match.rstrip(b"=")
        yield text[: len(text) - (len(text) % 4 == 1)]
