"""Writes pairs as lines of JSON with their bodies (exchange/1 of `export --full`), or their records
as lines (record/1). Compiled by mypyc; the same source runs without."""

from __future__ import annotations

from typing import Any, Final, final

from librt.strings import BytesWriter

from kafkascope.kernel.json_bodies import JsonBodies, JsonField, JsonTexts
from kafkascope.kernel.json_records import MAX_BYTES, JsonRecords
from kafkascope.kernel.lines import JsonLines
from kafkascope.kernel.pairs import FETCH, PRODUCE, Pair
from kafkascope.kernel.walker import Refused

NULL: Final = b"null"
NO_BATCHES: Final = b'{"base64":"","batches":[]}'


@final
class FullLines:
    """Writes the lines of one capture."""

    def __init__(self, lines: JsonLines, records: JsonRecords, host: Any) -> None:
        """`host` has the fields of bodies, fetch sessions as text, and names of topics."""
        self.lines = lines
        self.host = host
        self.bodies = JsonBodies(JsonTexts())
        self.records = records
        self.fields: dict[int, tuple[JsonField, JsonField] | None] = {}
        """Request and response by key and version; None where the general way writes them."""

    def line(self, item: Any) -> bytes | None:
        """Return the line of an exchange, with its line feed; None where the general way has to
        write it."""
        if not isinstance(item, Pair) or not item.is_ordinary():
            return None
        size = item.end - item.begin + item.response_end - item.response_begin
        fields = self.fields_of(item)
        if fields is None or size > MAX_BYTES:
            return None
        try:
            return self.written(item, fields[0], fields[1])
        except Refused:
            return None

    def fields_of(self, pair: Pair) -> tuple[JsonField, JsonField] | None:
        code = (pair.plan.key << 16) | pair.plan.version
        if code not in self.fields:
            self.fields[code] = self.host.fields(pair.plan)
        return self.fields[code]

    def written(self, pair: Pair, asks: JsonField, answers: JsonField) -> bytes:
        fields = fields_with_records(pair, self.records, self.host)
        sent = fields if pair.plan.key == PRODUCE else []
        fetched = fields if pair.plan.key == FETCH else []
        out = BytesWriter()
        self.lines.write(out, pair)
        out.write(b',"request":')
        at = pair.begin + 4 + pair.body_at
        self.bodies.write(out, asks, pair.data, at, pair.end, sent)
        out.write(b',"response":')
        if pair.answered:
            at = pair.response_begin + 4 + pair.plan.response_at
            self.bodies.write(out, answers, pair.response, at, pair.response_end, fetched)
        else:
            out.write(NULL)
        if pair.session is not None:
            out.write(b',"fetch_session":')
            session: bytes = self.host.session(pair.session)
            out.write(session)
        out.write(b"}\n")
        return out.getvalue()


def lines_of_records(item: Any, records: JsonRecords, host: Any) -> bytes | None:
    """Return the records of an exchange as lines; None where the general way has to write them.
    `records`: writes them alone. `host` has the names of topics."""
    if not isinstance(item, Pair) or not item.is_ordinary() or item.plan.key > FETCH:
        return None
    if item.end - item.begin + item.response_end - item.response_begin > MAX_BYTES:
        return None
    try:
        return b"".join(fields_with_records(item, records, host))
    except Refused:
        return None


def fields_with_records(pair: Pair, records: JsonRecords, host: Any) -> list[bytes]:
    """Return the JSON of the records fields of a Produce or Fetch, in the order of the wire."""
    out: list[bytes] = []
    given: dict[Any, int] | None = None
    if pair.plan.key == PRODUCE:
        source, data, found = "produce", pair.data, pair.facts.asked
        given = given_offsets(pair)
    elif pair.plan.key == FETCH:
        source, data, found = "fetch", pair.response, pair.facts.told
    else:
        return out
    if found is None:
        return out
    records.begin()
    number = b"%d" % pair.number
    for each in found:
        if each.size <= 0:
            if not records.alone:
                out.append(NULL if each.size < 0 else NO_BATCHES)
            continue
        topic, topic_id = each.topic, each.topic_id
        base = None if given is None else given.get((topic, topic_id, each.index))
        if topic_id is not None:
            topic = host.name_of(topic_id)
        field = data[each.at : each.at + each.size]
        out.append(records.of(number, source, topic, topic_id, each.index, field, base, True))
    return out


def given_offsets(pair: Pair) -> dict[Any, int]:
    """Return the offsets that the broker gave to the first records of partitions, by topic, its id,
    and index."""
    out: dict[Any, int] = {}
    found = pair.facts.told
    if found is not None:
        for each in found:
            if each.error == 0 and each.offset >= 0:
                out[(each.topic, each.topic_id, each.index)] = each.offset
    return out
