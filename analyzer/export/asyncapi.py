"""An AsyncAPI 3.0 document of what a capture shows: topics as channels, their schemas as messages,
applications as operations. `tests/analyzer/export/test_asyncapi.py` holds it against the JSON
Schema of the AsyncAPI Initiative."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.statistics.journeys.model import Application, AppMap, Read, Write
from kafkascope.analyzer.statistics.topics import Topics
from kafkascope.analyzer.text import plural
from kafkascope.analyzer.topics import TopicNames
from kafkascope.schemas.framing import Side
from kafkascope.schemas.model import Format, PayloadError, Schema, SchemaKey, is_too_much

BINDING: Final = "0.5.0"
"""Version of the Kafka bindings: the newest that AsyncAPI 3.0.0 knows."""
MEDIA_TYPES: Final[dict[Format, str]] = {
    "avro": "application/vnd.apache.avro+json;version=1.9.0",
    "protobuf": "application/vnd.google.protobuf;version=3",
    "json": "application/schema+json;version=draft-07",
}
DONE: Final = {"send": "Sent", "receive": "Received"}
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


def schemas_by_topic(topics: Topics, names: TopicNames) -> dict[str, list[TopicSchema]]:
    """Return the schemas that keys and values of each topic name."""
    out: dict[str, list[TopicSchema]] = {}
    if topics.payloads is None:
        return out
    known = topics.payloads.known
    for key, flow in topics.grouped(("topic",), names):
        for side, namespace, value in flow.schemas:
            named = SchemaKey(namespace, value)
            schema = next(iter(known.find(named)), None)
            type_name = ""
            with suppress(PayloadError):
                if schema is not None:
                    type_name = known.compiled(schema).codec().type_name
            of_topic = out.setdefault(str(key["topic"]), [])
            of_topic.append(TopicSchema(side, named, schema, type_name))
    return out


def asyncapi(
    title: str, shown: AppMap, schemas: Mapping[str, Sequence[TopicSchema]]
) -> dict[str, Any]:
    """Return the document. `schemas`: by topic."""
    topics = dict.fromkeys(edge.topic for _, edge in shown.edges())
    ids = _ids(topics)
    channels = {ids[topic]: _channel(topic, schemas.get(topic, ())) for topic in topics}
    operations: dict[str, Any] = {}
    for each, edge in shown.edges():
        action, group = ("send", None) if isinstance(edge, Write) else ("receive", edge.group)
        words = [each.name, action, edge.topic, group]
        name = _unused(".".join(filter(None, words)), operations)
        operations[name] = _operation(each, edge, action, group, ids[edge.topic])
    document = {
        "asyncapi": "3.0.0",
        "info": {
            "title": title,
            "version": "0.0.0",
            "description": "Channels, messages, and operations as seen in captured traffic.",
        },
        "channels": channels,
        "operations": operations,
    }
    return {name: part for name, part in document.items() if part}


def _ids(names: Iterable[str]) -> dict[str, str]:
    """Return the name of a component for each text."""
    used: dict[str, str] = {}
    for name in names:
        used[_unused(name, used)] = name
    return {name: id_ for id_, name in used.items()}


def _unused(name: str, used: Mapping[str, Any]) -> str:
    """Return a name of a component that no other has."""
    plain = _OTHER.sub("_", name) or "_"
    forms = chain([plain], (f"{plain}-{number}" for number in count(2)))
    return next(form for form in forms if form not in used)


def _channel(topic: str, schemas: Sequence[TopicSchema]) -> dict[str, Any]:
    values = [each for each in schemas if each.side == "value"]
    keys = [each for each in schemas if each.side == "key"]
    messages: dict[str, Any] = {}
    for each in values:
        messages[_unused(each.type or str(each.key), messages)] = _message(each, keys)
    if not messages:
        summary = "The capture names no schema of the values."
        messages["record"] = {"name": "record", "summary": summary, **_keyed(keys)}
    # Braces in an address are parameters; no topic that a broker accepts has them.
    legal = not _OTHER.search(topic)
    return {"address": topic if legal else None, "title": topic, "messages": messages}


def _message(value: TopicSchema, keys: Sequence[TopicSchema]) -> dict[str, Any]:
    message = {"name": value.type or str(value.key), "title": _called(value), **_keyed(keys)}
    schema = value.schema
    text = None if schema is None else _text_of(schema)
    if schema is None or text is None:
        return {**message, "summary": f"Schema {value.key} is not known."}
    return {**message, "payload": {"schemaFormat": MEDIA_TYPES[schema.format], "schema": text}}


def _keyed(keys: Sequence[TopicSchema]) -> dict[str, Any]:
    """Return the binding for keys, which takes JSON Schema alone; others are named in words."""
    if not keys:
        return {}
    known = keys[0].schema
    text = _text_of(known) if known is not None and known.format == "json" else None
    key = text if isinstance(text, dict) else {"description": ", ".join(map(_called, keys))}
    return {"bindings": {"kafka": {"key": key, "bindingVersion": BINDING}}}


def _called(each: TopicSchema) -> str:
    subjects = [name for name, _ in each.schema.subjects] if each.schema is not None else []
    more = f" ({', '.join(subjects)})" if subjects else ""
    return f"{each.side} {each.key}{more}"


def _text_of(schema: Schema) -> Any:
    """Return a schema as a document may hold it: JSON as a value; None where it is none."""
    if schema.format == "protobuf":
        return schema.text
    if is_too_much(schema.text.encode("utf-8", "replace")):
        return None
    try:
        return json.loads(schema.text)
    except (ValueError, RecursionError):
        return None


def _operation(
    each: Application, edge: Write | Read, action: str, group: str | None, channel: str
) -> dict[str, Any]:
    amount = "records" if edge.records is None else plural(edge.records, "record")
    operation: dict[str, Any] = {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "title": each.name,
        "summary": f"{DONE[action]} {amount} in the capture.",
    }
    named = {"groupId": [group] if group else [], "clientId": list(each.client_ids)}
    binding = {name: {"type": "string", "enum": enum} for name, enum in named.items() if enum}
    if binding:
        operation["bindings"] = {"kafka": {**binding, "bindingVersion": BINDING}}
    return operation
