"""An AsyncAPI 3.0 document of what a capture shows: topics as channels, their schemas as messages,
applications as operations. `tests/analyzer/export/test_asyncapi.py` holds it against the JSON
Schema of the AsyncAPI Initiative."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.journeys.model import AppMap
from kafkascope.analyzer.statistics.topics import Topics
from kafkascope.analyzer.text import plural
from kafkascope.analyzer.topics import TopicNames
from kafkascope.schemas.framing import Side
from kafkascope.schemas.model import Format, PayloadError, Schema, SchemaKey, is_too_much

BINDING: Final = {"bindingVersion": "0.5.0"}
"""Version of the Kafka bindings: the newest that AsyncAPI 3.0.0 knows."""
MEDIA_TYPES: Final[dict[Format, str]] = {
    "avro": "application/vnd.apache.avro+json;version=1.9.0",
    "protobuf": "application/vnd.google.protobuf;version=3",
    "json": "application/schema+json;version=draft-07",
}
_OTHER: Final = re.compile(r"[^A-Za-z0-9._-]")
"""No names of components have it; brokers refuse it in topics, but hostile traffic may hold it."""


class TopicSchema(NamedTuple):
    """A schema that keys or values of a topic name."""

    side: Side
    key: SchemaKey
    schema: Schema | None
    """None where it is not known."""
    type: str = ""
    """Name of the type that it declares."""

    @property
    def title(self) -> str:
        subjects = ", ".join(name for name, _ in self.schema.subjects) if self.schema else ""
        return f"{self.side} {self.key}" + (f" ({subjects})" if subjects else "")

    @property
    def document(self) -> Any:
        """The schema as a document may hold it: JSON as a value; None where there is none."""
        if self.schema is None or self.schema.format == "protobuf":
            return self.schema and self.schema.text
        if not is_too_much(self.schema.text.encode("utf-8", "replace")):
            with suppress(ValueError, RecursionError):
                return json.loads(self.schema.text)
        return None


def schemas_by_topic(topics: Topics, names: TopicNames) -> dict[str, list[TopicSchema]]:
    """Return the schemas that keys and values of each topic name."""
    out: list[tuple[str, TopicSchema]] = []
    if topics.payloads is None:
        return {}
    known = topics.payloads.known
    for key, flow in topics.grouped(("topic",), names):
        for side, namespace, value in flow.schemas:
            named, type_name = SchemaKey(namespace, value), ""
            schema = next(iter(known.find(named)), None)
            with suppress(PayloadError):
                type_name = known.compiled(schema).codec().type_name if schema else ""
            out.append((str(key["topic"]), TopicSchema(side, named, schema, type_name)))
    return by_key(out)


def asyncapi(
    title: str, shown: AppMap, schemas: Mapping[str, Sequence[TopicSchema]]
) -> dict[str, Any]:
    """Return the document. `schemas`: by topic."""
    channels, operations, ids = dict[str, Any](), dict[str, Any](), dict[str, str]()
    for _, edge in shown.edges():
        if edge.topic not in ids:
            ids[edge.topic] = _unused(edge.topic, channels)
            channels[ids[edge.topic]] = _channel(edge.topic, schemas.get(edge.topic, ()))
    for each, edge in shown.edges():
        action, done = ("send", "Sent") if edge.way == "writes" else ("receive", "Received")
        amount = "records" if edge.records is None else plural(edge.records, "record")
        named = {"groupId": [edge.group] if edge.group else [], "clientId": list(each.client_ids)}
        binding = {name: {"type": "string", "enum": enum} for name, enum in named.items() if enum}
        words = ".".join(filter(None, [each.name, action, edge.topic, edge.group]))
        operations[_unused(words, operations)] = {
            "action": action,
            "channel": {"$ref": f"#/channels/{ids[edge.topic]}"},
            "title": each.name,
            "summary": f"{done} {amount} in the capture.",
            **({"bindings": {"kafka": {**binding, **BINDING}}} if binding else {}),
        }
    about = "Channels, messages, and operations as seen in captured traffic."
    document = {
        "asyncapi": "3.0.0",
        "info": {"title": title, "version": "0.0.0", "description": about},
        "channels": channels,
        "operations": operations,
    }
    return {name: part for name, part in document.items() if part}


def _unused(name: str, used: Mapping[str, Any]) -> str:
    """Return a name of a component that no other has."""
    plain = _OTHER.sub("_", name) or "_"
    forms = chain([plain], (f"{plain}-{number}" for number in count(2)))
    return next(form for form in forms if form not in used)


def _channel(topic: str, schemas: Sequence[TopicSchema]) -> dict[str, Any]:
    messages: dict[str, Any] = {}
    keyed, keys = {}, [each for each in schemas if each.side == "key"]
    if keys:
        # The binding for keys takes JSON Schema alone; others are named in words.
        key = keys[0].document if keys[0].schema and keys[0].schema.format == "json" else None
        if not isinstance(key, dict):
            key = {"description": ", ".join(each.title for each in keys)}
        keyed = {"bindings": {"kafka": {"key": key, **BINDING}}}
    for each in schemas:
        if each.side == "value":
            name, document = each.type or str(each.key), each.document
            more: dict[str, Any] = {"summary": f"Schema {each.key} is not known."}
            if each.schema and document is not None:
                form = MEDIA_TYPES[each.schema.format]
                more = {"payload": {"schemaFormat": form, "schema": document}}
            message = {"name": name, "title": each.title, **keyed, **more}
            messages[_unused(name, messages)] = message
    if not messages:
        summary = "The capture names no schema of the values."
        messages["record"] = {"name": "record", "summary": summary, **keyed}
    # Braces in an address are parameters; no topic that a broker accepts has them.
    address = None if _OTHER.search(topic) else topic
    return {"address": address, "title": topic, "messages": messages}
