"""Print docs/grammar.md from the declarations: `python docs/print_grammar.py`, or `make docs`.

Newest layout of every message, and what each version before it changed: together they are every
layout of every version, so that a changed declaration is a changed line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.grammar import call_grammar, grammar, zookeeper_grammar
from kafkascope.dissectors.codec.history import history
from kafkascope.dissectors.messages import DATA
from kafkascope.dissectors.zookeeper.types import PREFIX, TYPES

TARGET = Path(__file__).with_name("grammar.md")

HEAD = """\
# Grammar of the Kafka protocol

Printed from the declarations in `dissectors/messages/` by `make docs`; do not edit. One version of
one message is printed by `kafkascope grammar NAME VERSION`.

Each message is shown at its newest version, then with what every version changed. A field in
brackets is an array. What follows `<tag: n>` is sent as tagged field `n`, and only when it
differs from its default.

| word | bytes |
| --- | --- |
| INT8, INT16, INT32, INT64 | two's complement, big-endian |
| UINT16, UINT32 | unsigned, big-endian |
| FLOAT64 | IEEE 754 double, big-endian |
| BOOLEAN | one byte, 0 or 1 |
| UUID | 16 bytes, shown as 22 characters of URL-safe base64 |
| UNSIGNED_VARINT | 7 bits a byte, lowest first, high bit on all but the last; 5 bytes at most |
| STRING | INT16 length, UTF-8; NULLABLE_STRING: length -1 is null |
| COMPACT_STRING | UNSIGNED_VARINT length + 1, UTF-8; COMPACT_NULLABLE_STRING: 0 is null |
| BYTES, RECORDS | INT32 length, bytes; NULLABLE_: length -1 is null |
| COMPACT_BYTES, COMPACT_RECORDS | UNSIGNED_VARINT length + 1, bytes; NULLABLE_: 0 is null |
| LONG_STRING | INT32 length, -1 is null, UTF-8: a text of ZooKeeper |
| OPERATIONS | of each INT32 type, BOOLEAN false, INT32 err, fields; then -1, true, -1 |
| array | INT32 count, -1 is null; flexible: UNSIGNED_VARINT count + 1, 0 is null; elements |
| _tagged_fields | UNSIGNED_VARINT count; of each: UNSIGNED_VARINT tag and size, then its bytes |
"""


def document() -> str:
    """The whole text."""
    return "\n".join(_parts())


def _parts() -> Iterator[str]:
    yield HEAD
    yield "## Headers\n"
    for name in ("RequestHeader", "ResponseHeader"):
        yield from _message(name)
    yield "## Requests and responses\n"
    for key, api in registry.APIS.items():
        yield f"### {api.name} ({key})\n"
        yield _block(call_grammar(key, api.versions.high))
        yield _block(history(api.name))
    yield "## Records, keys and values, and embedded structures\n"
    for name in DATA:
        if not name.endswith("Header") and not name.startswith(PREFIX):
            yield from _message(name)
    yield "## ZooKeeper\n"
    yield "Requests by their types; the handshake has no header. Versions do not differ.\n"
    for each in TYPES.values():
        yield f"### {each.name}\n"
        yield _block(zookeeper_grammar(each.key))


def _message(name: str) -> Iterator[str]:
    newest = registry.message(name).versions.high
    layouts = (registry.layout_of(name, newest), *registry.variants_of(name, newest))
    yield f"### {name}\n"
    yield _block("\n".join(map(grammar, layouts)))
    yield _block(history(name))


def _block(text: str) -> str:
    return f"```\n{text}```\n"


if __name__ == "__main__":
    TARGET.write_text(document())
