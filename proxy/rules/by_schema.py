"""A key or value that rules give to records: by the schema of what stands there, where that is
known, else as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.payloads.model import PayloadError
from kafkascope.dissectors.codec.jsonform import loads
from kafkascope.dissectors.errors import DissectError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.payloads.framing import Side
    from kafkascope.analyzer.payloads.model import Schema, Selector
    from kafkascope.dissectors.records.records import Record

PREFIX: Final = 5
"""Bytes of Confluent's framing."""
MOST_MADE: Final = 1000
"""Values that are kept, one for each schema."""


class GivenValue:
    """What the key or value of each record becomes."""

    def __init__(self, side: Side, text: str | None) -> None:
        """`text`: JSON of the value, or the value itself; None: null."""
        self.side: Final = side
        self.text: Final = text
        self._plain = None if text is None else text.encode()
        self._value = _value(text)
        self._made: dict[tuple[str | None, bytes], bytes] = {}
        self._changes = -1

    def put(self, record: Record, topic: str | None, payloads: Payloads | None) -> Record:
        """Return the record with the new key or value; `PayloadError` where it does not fit the
        schema of the old one, or nobody knows that. Without schemas, and where they say nothing,
        it is text."""
        new = self._bytes(record, topic, payloads)
        return record._replace(key=new) if self.side == "key" else record._replace(value=new)

    def _bytes(self, record: Record, topic: str | None, payloads: Payloads | None) -> bytes | None:
        if payloads is None or self._plain is None:
            return self._plain
        data = (record.key if self.side == "key" else record.value) or b""
        if self._changes != payloads.known.changes:
            self._changes = payloads.known.changes
            self._made.clear()
        short = None if record.headers else (topic, data[:PREFIX])
        if short is not None and (made := self._made.get(short)) is not None:
            return made
        decoded = payloads.decode(topic, self.side, data, record.headers)
        if decoded is None:
            return self._plain
        found = decoded.found
        if found is None:
            assert decoded.error is not None
            raise decoded.error
        if data[found.at :] != found.data:
            raise PayloadError("does-not-fit", "it lies elsewhere than in its bytes, or compressed")
        new = data[: found.at] + found.codec.encode(self._value)
        usual = found.key is None or found.at == PREFIX
        # Of Protobuf an index follows, which may be another one.
        if short is not None and usual and found.schema.format != "protobuf":
            if len(self._made) >= MOST_MADE:
                self._made.clear()
            self._made[short] = new
        return new

    def refusal(self, topic: str, payloads: Payloads) -> str | None:
        """Return why it fits no schema that is known for a topic; None where one may fit."""
        if self._plain is None:
            return None
        reasons = []
        for schema, selector in _of_topic(topic, self.side, payloads):
            try:
                payloads.known.compiled(schema).codec(selector).encode(self._value)
            except PayloadError as error:
                reasons.append(told(error))
            else:
                return None
        return reasons[0] if reasons else None


def told(error: PayloadError) -> str:
    """Return what does not fit where, in words."""
    return f"at {error.path}: {error.text}" if error.path else error.text


def _value(text: str | None) -> Any:
    try:
        return None if text is None else loads(text.encode())
    except (ValueError, DissectError):
        return text


def _of_topic(topic: str, side: Side, payloads: Payloads) -> Iterator[tuple[Schema, Selector]]:
    """Yield the schemas that the user gave for a topic, or that have its usual subject."""
    assigned = payloads.known.assigned.get((topic, side))
    if assigned is not None:
        yield assigned.schema, assigned.selector
    for schema in payloads.known:
        # Which message of a Protobuf file is meant, only payloads say.
        if schema.format != "protobuf" and any(
            name == f"{topic}-{side}" for name, _ in schema.subjects
        ):
            yield schema, None
