"""Reads schemas from requests to a schema registry and its responses. Stateless.

Registries: those that speak Confluent's REST API (Karapace, Apicurio below /apis/ccompat),
Apicurio's own API, AWS Glue. Known by paths and JSON, on any host and port, behind any prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Format, HttpHead, Namespace, SchemaKey
from kafkascope.schemas.observed import (
    SchemaObservation,
    artifact_name,
    artifact_version,
    as_json,
    as_text,
    confluent_schema,
    format_named,
    guid_key,
    id_key,
    number_of,
    references_of,
    subject_of,
)

# Confluent's error code: there is no such schema.
NOT_FOUND: Final = 40403
_PATH: Final = re.compile(r"/(?:schemas(?:/(?:ids|guids)/|/?$)|subjects/)|/apis/registry/v\d")
_GLUE: Final = "awsglue."
_IDS: Final[dict[str, Namespace]] = {"globalIds": "globalId", "contentIds": "contentId"}
_MISSING: Final = ("Artifact", "Content", "Version")
"""What an error says was not found, where the path is one that the server knows."""


def wants(request: HttpHead) -> bool:
    """Return whether a request may be one to a registry."""
    path = request.target[: LIMITS.path_chars].partition("?")[0]
    return bool(_PATH.search(path)) or _is_glue(request)


def _is_glue(request: HttpHead) -> bool:
    return request.headers.get("x-amz-target", "").lower().startswith(_GLUE)


def observations(
    request: HttpHead, posted: bytes, response: HttpHead, body: bytes
) -> list[SchemaObservation]:
    """Return the observations of schemas in an exchange; `posted`, `body`: its bodies."""
    if _is_glue(request):
        return list(_glue(request, posted, response, body))
    path, _, query = request.target.partition("?")
    parts = [unquote(part) for part in path.split("/")]
    if (start := _start_of(parts)) is not None:
        return list(_apicurio(parts[start:], request, posted, response, body))
    start = next((n for n, part in enumerate(parts) if part in ("schemas", "subjects")), None)
    if start is None:
        return []
    context = parts[start - 1] if start >= 2 and parts[start - 2] == "contexts" else ""
    options = parse_qs(query, max_num_fields=50) if query.count("&") < 50 else {}
    rest = parts[start + 1 :]
    if parts[start] == "schemas":
        facts = _schemas(rest, options, response, body)
    else:
        facts = _subjects(request.method, rest, posted, response, body)
    return [schema._replace(context=context) for schema in facts]


def is_missing(body: bytes) -> bool:
    """Return whether the body of a 404 is a registry's, which lacks a schema, subject or
    version."""
    value = as_json(body)
    if not isinstance(value, dict):
        return False
    return value.get("error_code") in (40401, 40402, NOT_FOUND) or _lacks(value)


def _described(value: Any, keys: tuple[SchemaKey, ...] = ()) -> SchemaObservation | None:
    schema = confluent_schema(value, keys)
    return schema if schema is not None and schema.format is not None else None


def _schemas(
    rest: list[str], options: dict[str, list[str]], response: HttpHead, body: bytes
) -> Iterator[SchemaObservation]:
    """/schemas, /schemas/ids/ID, /schemas/guids/GUID and what is below."""
    value = as_json(body)
    if rest in ([], [""]):
        for each in value[: LIMITS.listed] if isinstance(value, list) else ():
            if (schema := _described(each)) is not None:
                yield schema
        return
    kind, text, *more = rest if len(rest) > 1 else ("", "")
    keys = id_key(text) if kind == "ids" else guid_key(text) if kind == "guids" else ()
    if not keys:
        return
    if response.status == 404:
        # 404 without that code is a path that the server does not have.
        if isinstance(value, dict) and value.get("error_code") == NOT_FOUND:
            yield SchemaObservation(keys, missing=True)
    elif response.status != 200:
        return
    elif not more:
        if (schema := _described(value, keys)) is not None:
            named = subject_of(options.get("subject", [""])[0])
            yield schema._replace(subjects=schema.subjects or named)
    elif more == ["schema"]:
        if (plain := as_text(body)) is not None:
            yield SchemaObservation(keys, plain)
    elif isinstance(value, list):
        yield from _lists(more, keys, value[: LIMITS.listed])


def _lists(
    more: list[str], keys: tuple[SchemaKey, ...], value: list[Any]
) -> Iterator[SchemaObservation]:
    """What is below an id: versions, subjects; below a GUID: ids."""
    if more == ["versions"]:
        named = (
            subject_of(v.get("subject"), v.get("version")) for v in value if isinstance(v, dict)
        )
        yield SchemaObservation(keys, subjects=tuple(chain.from_iterable(named)))
    elif more == ["subjects"]:
        yield SchemaObservation(keys, subjects=tuple(chain.from_iterable(map(subject_of, value))))
    elif more == ["ids"]:
        for each in value:
            # Ids of other contexts are not ours.
            if isinstance(each, dict) and each.get("context", ".") == ".":
                yield SchemaObservation(keys + id_key(each.get("id")))


def _subjects(
    method: str, rest: list[str], posted: bytes, response: HttpHead, body: bytes
) -> Iterator[SchemaObservation]:
    """/subjects/S, /subjects/S/versions and what is below."""
    if response.status != 200 or not rest:
        return
    subject, more = rest[0], rest[1:]
    value = as_json(body)
    if method == "POST" and more in ([], ["versions"]):
        sent = _described(as_json(posted))
        if not isinstance(value, dict) or sent is None:
            return
        there = subject_of(value.get("subject", subject), value.get("version"))
        keys = id_key(value.get("id")) + guid_key(value.get("guid"))
        if not keys:
            return
        yield sent._replace(keys=keys, subjects=there, firm=False)
        if schema := _described({"schemaType": value.get("schemaType", sent.format), **value}):
            yield schema._replace(keys=keys, subjects=there, format=sent.format)
    elif method == "GET" and len(more) == 2 and more[0] == "versions":
        if (schema := _described(value)) is not None:
            yield schema._replace(subjects=schema.subjects or subject_of(subject, more[1]))
    elif method == "GET" and len(more) == 3 and (more[0], more[2]) == ("versions", "schema"):
        there, plain = subject_of(subject, more[1]), as_text(body)
        if plain is not None and there and there[0][1]:
            yield SchemaObservation((), plain, subjects=there)


def _glue(
    request: HttpHead, posted: bytes, response: HttpHead, body: bytes
) -> Iterator[SchemaObservation]:
    """GetSchemaVersion and those that register, of AWS Glue."""
    sent, value = as_json(posted), as_json(body)
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
    yield SchemaObservation(
        keys,
        text if isinstance(text, str) else None,
        format_named(kind),
        subject_of(name, version),
        firm=own,
    )


# --- Apicurio's own API


def _lacks(error: Any) -> bool:
    """Return whether an error means that there is no such artifact, content or version."""
    name = error.get("name") if isinstance(error, dict) else None
    return isinstance(name, str) and name.startswith(_MISSING) and "NotFound" in name


def _start_of(parts: list[str]) -> int | None:
    """Return the index of the first part after Apicurio's own API, whatever its prefix."""
    for at in range(len(parts) - 3):
        if parts[at : at + 2] == ["apis", "registry"] and parts[at + 2] in ("v2", "v3"):
            return at + 3
    return None


def _apicurio(
    parts: list[str], request: HttpHead, posted: bytes, response: HttpHead, body: bytes
) -> Iterator[SchemaObservation]:
    """Read an exchange with Apicurio's own API, v2 or v3; `parts`: of the path, after the API."""
    room, *rest = parts
    value = as_json(body)
    if room == "ids" and len(rest) >= 2 and rest[0] in _IDS:
        yield from _by_id(rest, response, body)
    elif not 200 <= response.status < 300:
        return
    elif room == "groups" and len(rest) >= 2 and rest[1] == "artifacts":
        group, artifact, more = rest[0], (rest[2] if len(rest) > 2 else None), rest[3:]
        if request.method in ("POST", "PUT"):
            # Who registers, or looks up what it is to register, sends the content.
            text, named, references = _content(request, posted)
            for schema in _meta(value, group, artifact):
                if text is not None:
                    kind, own = schema.format or named, references or schema.references
                    schema = schema._replace(text=text, format=kind, references=own, firm=False)
                yield schema
        elif artifact is not None:
            yield from _of_artifact(group, artifact, more, response, body)
    elif room == "search":
        yield from _meta(value, None, None)


def _by_id(rest: list[str], response: HttpHead, body: bytes) -> Iterator[SchemaObservation]:
    """/ids/globalIds/ID and /ids/contentIds/ID, with or without /references."""
    number = number_of(rest[1])
    if number is None:
        return
    keys = (SchemaKey(_IDS[rest[0]], number),)
    if response.status == 404:
        if _lacks(as_json(body)):
            yield SchemaObservation(keys, missing=True)
    elif response.status != 200:
        return
    elif rest[2:] == ["references"]:
        yield SchemaObservation(keys, references=references_of(as_json(body)))
    elif len(rest) == 2 and (text := as_text(body)) is not None:
        yield SchemaObservation(keys, text, _artifact_type(response))


def _of_artifact(
    group: str, artifact: str, more: list[str], response: HttpHead, body: bytes
) -> Iterator[SchemaObservation]:
    """Read the response to GET of an artifact's versions: contents, references, metadata."""
    value = as_json(body)
    there: tuple[tuple[str, int], ...] = ()
    if len(more) >= 2 and more[0] == "versions":
        there = subject_of(artifact_name(group, artifact), more[1])
        more = more[2:]
        numbered = bool(there) and there[0][1] > 0
        if more == ["references"] and numbered:
            yield SchemaObservation(subjects=there, references=references_of(value))
            return
        # v2 gives the content of a version, v3 what is said of it.
        if more in ([], ["content"]) and not (isinstance(value, dict) and "globalId" in value):
            text = as_text(body)
            if text is not None and numbered:
                yield SchemaObservation((), text, _artifact_type(response), there)
            return
    yield from _meta(value, group, artifact)


def _content(request: HttpHead, posted: bytes) -> tuple[str | None, Format | None, tuple[Any, ...]]:
    """Return the content that a request registers, its type and references."""
    value, kind = as_json(posted), _artifact_type(request)
    if isinstance(value, dict):
        # v3 wraps contents, v2 does where there are references.
        first = value.get("firstVersion", value)
        inside = first.get("content") if isinstance(first, dict) else None
        named = format_named(value["artifactType"]) if "artifactType" in value else kind
        if isinstance(inside, dict) and isinstance(inside.get("content"), str):
            return inside["content"], named, references_of(inside.get("references"))
        extended = "extended" in request.headers.get("content-type", "")
        if extended and isinstance(inside, str):
            return inside, named, references_of(value.get("references"))
    return as_text(posted), kind, ()


def _artifact_type(head: HttpHead) -> Format | None:
    return format_named(head.headers.get("x-registry-artifacttype"))


def _meta(value: Any, group: str | None, artifact: str | None) -> Iterator[SchemaObservation]:
    """Read objects with ids: one, one inside a response, or a list of versions."""
    listed = [value]
    if isinstance(value, dict):
        inner, versions = value.get("version"), value.get("versions")
        listed = [inner] if isinstance(inner, dict) else listed
        listed = versions[: LIMITS.listed] if isinstance(versions, list) else listed
    for each in listed:
        if (schema := artifact_version(each, group, artifact)) is not None:
            yield schema
