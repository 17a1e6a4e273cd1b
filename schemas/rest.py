"""Reads schemas from requests to a schema registry and its responses. Stateless.

Registries: those that speak Confluent's REST API (Karapace, Apicurio below /apis/ccompat),
Apicurio's own API, AWS Glue. Known by paths and JSON, on any host and port, behind any prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from kafkascope.schemas.http_head import HttpHead
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Format, Namespace, SchemaKey
from kafkascope.schemas.parts import (
    SchemaObservation,
    Subjects,
    artifact_name,
    artifact_version,
    as_json,
    as_text,
    confluent_schema,
    elements,
    format_named,
    guid_key,
    id_key,
    members,
    number_of,
    references_of,
    subject_in,
    subject_of,
    text_in,
)

# Confluent's error code: there is no such schema.
NOT_FOUND: Final = 40403
_PATH: Final = re.compile(r"/(?:schemas(?:/(?:ids|guids)/|/?$)|subjects/)|/apis/registry/v\d")
_GLUE: Final = "awsglue."
_IDS: Final[dict[str, Namespace]] = {"globalIds": "globalId", "contentIds": "contentId"}
_MISSING: Final = ("Artifact", "Content", "Version")
"""What an error says was not found, where the path is one that the server knows."""


@dataclass(frozen=True)
class _Call:
    """A request with its response."""

    request: HttpHead
    posted: bytes
    response: HttpHead
    body: bytes

    @cached_property
    def sent(self) -> Any:
        return as_json(self.posted)

    @cached_property
    def value(self) -> Any:
        return as_json(self.body)


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
    call = _Call(request, posted, response, body)
    if _is_glue(request):
        return list(_glue(call))
    path, _, query = request.target.partition("?")
    parts = [unquote(part) for part in path.split("/")]
    for at, api in enumerate(zip(parts, parts[1:], parts[2:-1], strict=False)):
        if api in (("apis", "registry", "v2"), ("apis", "registry", "v3")):
            return list(_apicurio(parts[at + 3 :], call))
    start = next((n for n, part in enumerate(parts) if part in ("schemas", "subjects")), None)
    if start is None:
        return []
    context = parts[start - 1] if start >= 2 and parts[start - 2] == "contexts" else ""
    options = parse_qs(query, max_num_fields=50) if query.count("&") < 50 else {}
    rest = parts[start + 1 :]
    if parts[start] == "schemas":
        facts = _schemas(rest, options.get("subject", [""])[0], call)
    else:
        facts = _subjects(rest, call)
    return [schema._replace(context=context) for schema in facts]


def is_missing(body: bytes) -> bool:
    """Return whether the body of a 404 is a registry's, which lacks a schema, subject or
    version."""
    value = as_json(body)
    return members(value).get("error_code") in (40401, 40402, NOT_FOUND) or _lacks(value)


def _described(value: Any, keys: tuple[SchemaKey, ...] = ()) -> Iterator[SchemaObservation]:
    schema = confluent_schema(value, keys)
    if schema is not None and schema.format is not None:
        yield schema


def _schemas(rest: list[str], subject: str, call: _Call) -> Iterator[SchemaObservation]:
    """/schemas, /schemas/ids/ID, /schemas/guids/GUID and what is below."""
    status, value = call.response.status, call.value
    match rest:
        case [] | [""]:
            yield from chain.from_iterable(map(_described, elements(value)))
            return
        case ["ids", text, *more]:
            keys = id_key(text)
        case ["guids", text, *more]:
            keys = guid_key(text)
        case _:
            return
    # 404 without that code is a path that the server does not have.
    if status == 404 and keys and members(value).get("error_code") == NOT_FOUND:
        yield SchemaObservation(keys, missing=True)
    if status != 200 or not keys:
        return
    match more:
        case []:
            for schema in _described(value, keys):
                yield schema._replace(subjects=schema.subjects or subject_of(subject))
        case ["schema"]:
            if (plain := as_text(call.body)) is not None:
                yield SchemaObservation(keys, plain)
        case ["versions"] if isinstance(value, list):
            named = map(subject_in, elements(value))
            yield SchemaObservation(keys, subjects=tuple(chain.from_iterable(named)))
        case ["subjects"] if isinstance(value, list):
            named = map(subject_of, elements(value))
            yield SchemaObservation(keys, subjects=tuple(chain.from_iterable(named)))
        case ["ids"]:
            for each in elements(value):
                # Ids of other contexts are not ours.
                if isinstance(each, dict) and each.get("context", ".") == ".":
                    yield SchemaObservation(keys + id_key(each.get("id")))


def _subjects(rest: list[str], call: _Call) -> Iterator[SchemaObservation]:
    """/subjects/S, /subjects/S/versions and what is below."""
    if call.response.status != 200:
        return
    value = call.value
    match (call.request.method, *rest):
        case ("POST", subject) | ("POST", subject, "versions"):
            about = members(value)
            there = subject_of(about.get("subject", subject), about.get("version"))
            keys = id_key(about.get("id")) + guid_key(about.get("guid"))
            for sent in _described(call.sent) if keys else ():
                yield sent._replace(keys=keys, subjects=there, firm=False)
                own = {"schemaType": about.get("schemaType", sent.format), **about}
                for schema in _described(own):
                    yield schema._replace(keys=keys, subjects=there, format=sent.format)
        case ("GET", subject, "versions", version):
            for schema in _described(value):
                named = schema.subjects or subject_of(subject, version)
                yield schema._replace(subjects=named)
        case ("GET", subject, "versions", version, "schema"):
            there, plain = subject_of(subject, version), as_text(call.body)
            if plain is not None and there and there[0][1]:
                yield SchemaObservation((), plain, subjects=there)


def _glue(call: _Call) -> Iterator[SchemaObservation]:
    """GetSchemaVersion and those that register, of AWS Glue."""
    sent, value = call.sent, call.value
    if call.response.status != 200 or not isinstance(value, dict) or not isinstance(sent, dict):
        return
    keys = guid_key(value.get("SchemaVersionId") or sent.get("SchemaVersionId"))
    if not keys:
        return
    schema = sent.get("SchemaId")
    name = (schema if isinstance(schema, dict) else sent).get("SchemaName")
    arn = text_in(value, "SchemaArn")
    if name is None and arn is not None:
        name = arn.rpartition("/")[2]
    version = value.get("VersionNumber") or value.get("LatestSchemaVersion")
    own = text_in(value, "SchemaDefinition")
    text = text_in(sent, "SchemaDefinition") if own is None else own
    kind = format_named(value.get("DataFormat") or sent.get("DataFormat"))
    yield SchemaObservation(keys, text, kind, subject_of(name, version), firm=own is not None)


# --- Apicurio's own API


def _lacks(error: Any) -> bool:
    """Return whether an error means that there is no such artifact, content or version."""
    name = text_in(members(error), "name") or ""
    return name.startswith(_MISSING) and "NotFound" in name


def _apicurio(parts: list[str], call: _Call) -> Iterator[SchemaObservation]:
    """Read an exchange with Apicurio's own API, v2 or v3; `parts`: of the path, after the API."""
    good = 200 <= call.response.status < 300
    match parts:
        case ["ids", kind, number, *more] if kind in _IDS:
            yield from _by_id(_IDS[kind], number, more, call)
        case ["groups", group, "artifacts", *more] if good:
            artifact = more[0] if more else None
            if call.request.method in ("POST", "PUT"):
                yield from _registered(group, artifact, call)
            elif artifact is not None:
                yield from _of_artifact(group, artifact, more[1:], call)
        case ["search", *_] if good:
            yield from _meta(call.value, None, None)


def _by_id(
    space: Namespace, text: str, more: list[str], call: _Call
) -> Iterator[SchemaObservation]:
    """/ids/globalIds/ID and /ids/contentIds/ID, with or without /references."""
    number, status = number_of(text), call.response.status
    if number is None:
        return
    keys = (SchemaKey(space, number),)
    if status == 404 and _lacks(call.value):
        yield SchemaObservation(keys, missing=True)
    elif status == 200 and more == ["references"]:
        yield SchemaObservation(keys, references=references_of(call.value))
    elif status == 200 and not more and (text := as_text(call.body) or ""):
        yield SchemaObservation(keys, text, _artifact_type(call.response))


def _of_artifact(
    group: str, artifact: str, more: list[str], call: _Call
) -> Iterator[SchemaObservation]:
    """Read the response to GET of an artifact's versions: contents, references, metadata."""
    value, below = call.value, more
    there: Subjects = ()
    if len(more) >= 2 and more[0] == "versions":
        there, below = subject_of(artifact_name(group, artifact), more[1]), more[2:]
    if there and there[0][1] > 0:
        if below == ["references"]:
            yield SchemaObservation(subjects=there, references=references_of(value))
            return
        # v2 gives the content of a version, v3 what is said of it.
        text = as_text(call.body)
        if below in ([], ["content"]) and "globalId" not in members(value) and text is not None:
            yield SchemaObservation((), text, _artifact_type(call.response), there)
            return
    yield from _meta(value, group, artifact)


def _registered(group: str, artifact: str | None, call: _Call) -> Iterator[SchemaObservation]:
    """Read what registers, or looks up what it is to register: it sends the content."""
    value = members(call.sent)
    kind, references = _artifact_type(call.request), value.get("references")
    if "artifactType" in value:
        kind = format_named(value["artifactType"])
    # v3 wraps contents, v2 does where there are references.
    inside = members(value.get("firstVersion", value)).get("content")
    wrapped = members(inside)
    if (text := text_in(wrapped, "content")) is not None:
        references = wrapped.get("references")
    elif isinstance(inside, str) and "extended" in call.request.headers.get("content-type", ""):
        text = inside
    else:
        text, kind, references = as_text(call.posted), _artifact_type(call.request), None
    for schema in _meta(call.value, group, artifact):
        if text is not None:
            named, own = schema.format or kind, references_of(references) or schema.references
            schema = schema._replace(text=text, format=named, references=own, firm=False)
        yield schema


def _artifact_type(head: HttpHead) -> Format | None:
    return format_named(head.headers.get("x-registry-artifacttype"))


def _meta(value: Any, group: str | None, artifact: str | None) -> Iterator[SchemaObservation]:
    """Read objects with ids: one, one inside a response, or a list of versions."""
    inner, versions = members(value).get("version"), members(value).get("versions")
    if isinstance(versions, list):
        listed = elements(versions)
    else:
        listed = [inner if isinstance(inner, dict) else value]
    for each in listed:
        if (schema := artifact_version(each, group, artifact)) is not None:
            yield schema
