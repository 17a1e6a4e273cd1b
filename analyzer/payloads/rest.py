"""Reads schemas from requests to a schema registry and its responses. Stateless.

Registries: those that speak Confluent's REST API (Karapace, Apicurio below /apis/ccompat),
Apicurio's own API, AWS Glue. Known by paths and JSON, on any host and port, behind any prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from kafkascope.analyzer.model import HttpHead
from kafkascope.analyzer.payloads import rest_apicurio
from kafkascope.analyzer.payloads.gathered import (
    MAX_LIST,
    Said,
    as_json,
    as_text,
    confluent_schema,
    format_named,
    guid_key,
    id_key,
    subject_of,
)
from kafkascope.analyzer.payloads.model import SchemaKey

NOT_FOUND: Final = 40403
"""Confluent's error code: there is no such schema."""
MAX_DESCRIBED: Final = 2000
"""Characters of a path that are looked at."""

_PATH: Final = re.compile(r"/(?:schemas(?:/(?:ids|guids)/|/?$)|subjects/)|/apis/registry/v\d")
_GLUE: Final = "awsglue."


def wants(request: HttpHead) -> bool:
    """Return whether a request may be one to a registry."""
    path = request.target[:MAX_DESCRIBED].partition("?")[0]
    return bool(_PATH.search(path)) or _is_glue(request)


def _is_glue(request: HttpHead) -> bool:
    return request.headers.get("x-amz-target", "").lower().startswith(_GLUE)


def told_by(request: HttpHead, asked: bytes, response: HttpHead, answer: bytes) -> list[Said]:
    """Return the observations of schemas in an exchange; `asked`, `answer`: its bodies."""
    if _is_glue(request):
        return list(_glue(request, asked, response, answer))
    path, _, query = request.target.partition("?")
    parts = [unquote(part) for part in path.split("/")]
    if (start := rest_apicurio.start_of(parts)) is not None:
        return list(rest_apicurio.schema_in(parts[start:], request, asked, response, answer))
    start = next((n for n, part in enumerate(parts) if part in ("schemas", "subjects")), None)
    if start is None:
        return []
    context = parts[start - 1] if start >= 2 and parts[start - 2] == "contexts" else ""
    asking = parse_qs(query, max_num_fields=50) if query.count("&") < 50 else {}
    rest = parts[start + 1 :]
    if parts[start] == "schemas":
        facts = _schemas(rest, asking, response, answer)
    else:
        facts = _subjects(request.method, rest, asked, response, answer)
    return [said._replace(context=context) for said in facts]


def says_missing(answer: bytes) -> bool:
    """Return whether the body of a 404 is a registry's, which lacks a schema, subject or
    version."""
    value = as_json(answer)
    if not isinstance(value, dict):
        return False
    return value.get("error_code") in (40401, 40402, NOT_FOUND) or rest_apicurio.is_missing(value)


def _described(value: Any, keys: tuple[SchemaKey, ...] = ()) -> Said | None:
    said = confluent_schema(value, keys)
    return said if said is not None and said.format is not None else None


def _schemas(
    rest: list[str], asking: dict[str, list[str]], response: HttpHead, answer: bytes
) -> Iterator[Said]:
    """/schemas, /schemas/ids/ID, /schemas/guids/GUID and what is below."""
    value = as_json(answer)
    if rest in ([], [""]):
        for each in value[:MAX_LIST] if isinstance(value, list) else ():
            if (said := _described(each)) is not None:
                yield said
        return
    kind, text, *more = rest if len(rest) > 1 else ("", "")
    keys = id_key(text) if kind == "ids" else guid_key(text) if kind == "guids" else ()
    if not keys:
        return
    if response.status == 404:
        # 404 without that code is a path that the server does not have.
        if isinstance(value, dict) and value.get("error_code") == NOT_FOUND:
            yield Said(keys, missing=True)
    elif response.status != 200:
        return
    elif not more:
        if (said := _described(value, keys)) is not None:
            named = subject_of(asking.get("subject", [""])[0])
            yield said._replace(subjects=said.subjects or named)
    elif more == ["schema"]:
        if (plain := as_text(answer)) is not None:
            yield Said(keys, plain)
    elif isinstance(value, list):
        yield from _lists(more, keys, value[:MAX_LIST])


def _lists(more: list[str], keys: tuple[SchemaKey, ...], value: list[Any]) -> Iterator[Said]:
    """What is below an id: versions, subjects; below a GUID: ids."""
    if more == ["versions"]:
        found = [
            subject_of(each.get("subject"), each.get("version"))
            for each in value
            if isinstance(each, dict)
        ]
        yield Said(keys, subjects=tuple(one for each in found for one in each))
    elif more == ["subjects"]:
        yield Said(keys, subjects=tuple(one for each in value for one in subject_of(each)))
    elif more == ["ids"]:
        for each in value:
            # Ids of other contexts are not ours.
            if isinstance(each, dict) and each.get("context", ".") == ".":
                yield Said(keys + id_key(each.get("id")))


def _subjects(
    method: str, rest: list[str], asked: bytes, response: HttpHead, answer: bytes
) -> Iterator[Said]:
    """/subjects/S, /subjects/S/versions and what is below."""
    if response.status != 200 or not rest:
        return
    subject, more = rest[0], rest[1:]
    value = as_json(answer)
    if method == "POST" and more in ([], ["versions"]):
        sent = _described(as_json(asked))
        if not isinstance(value, dict) or sent is None:
            return
        there = subject_of(value.get("subject", subject), value.get("version"))
        keys = id_key(value.get("id")) + guid_key(value.get("guid"))
        if not keys:
            return
        yield sent._replace(keys=keys, subjects=there, firm=False)
        if said := _described({"schemaType": value.get("schemaType", sent.format), **value}):
            yield said._replace(keys=keys, subjects=there, format=sent.format)
    elif method == "GET" and len(more) == 2 and more[0] == "versions":
        if (said := _described(value)) is not None:
            yield said._replace(subjects=said.subjects or subject_of(subject, more[1]))
    elif method == "GET" and len(more) == 3 and (more[0], more[2]) == ("versions", "schema"):
        there, plain = subject_of(subject, more[1]), as_text(answer)
        if plain is not None and there and there[0][1]:
            yield Said((), plain, subjects=there)


def _glue(request: HttpHead, asked: bytes, response: HttpHead, answer: bytes) -> Iterator[Said]:
    """GetSchemaVersion and those that register, of AWS Glue."""
    sent, value = as_json(asked), as_json(answer)
    if response.status != 200 or not isinstance(value, dict) or not isinstance(sent, dict):
        return
    keys = guid_key(value.get("SchemaVersionId") or sent.get("SchemaVersionId"))
    if not keys:
        return
    schema = sent.get("SchemaId")
    name = schema.get("SchemaName") if isinstance(schema, dict) else sent.get("SchemaName")
    arn = value.get("SchemaArn")
    if name is None and isinstance(arn, str):
        name = arn.rpartition("/")[2]
    version = value.get("VersionNumber") or value.get("LatestSchemaVersion")
    text = value.get("SchemaDefinition")
    own = isinstance(text, str)
    if not own:
        text = sent.get("SchemaDefinition")
    kind = value.get("DataFormat") or sent.get("DataFormat")
    yield Said(
        keys,
        text if isinstance(text, str) else None,
        format_named(kind),
        subject_of(name, version),
        firm=own,
    )
