"""Reads schemas from requests to Apicurio's own API (v2, v3) and its responses. Stateless."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.model import HttpHead
from kafkascope.analyzer.payloads.gathered import (
    FORMATS,
    MAX_LIST,
    Said,
    artifact_name,
    artifact_version,
    as_json,
    as_text,
    format_named,
    number_of,
    references_of,
    subject_of,
)
from kafkascope.analyzer.payloads.model import Format, Namespace, SchemaKey

_IDS: Final[dict[str, Namespace]] = {"globalIds": "globalId", "contentIds": "contentId"}
_MISSING: Final = ("Artifact", "Content", "Version")
"""What an error says was not found, where the path is one that the server knows."""


def is_missing(error: Any) -> bool:
    """Return whether an error means that there is no such artifact, content or version."""
    name = error.get("name") if isinstance(error, dict) else None
    return isinstance(name, str) and name.startswith(_MISSING) and "NotFound" in name


def start_of(parts: list[str]) -> int | None:
    """Return the part behind which a path is one of Apicurio's own API, behind whatever prefix."""
    for at in range(len(parts) - 3):
        if parts[at : at + 2] == ["apis", "registry"] and parts[at + 2] in ("v2", "v3"):
            return at + 3
    return None


def schema_in(
    parts: list[str], request: HttpHead, asked: bytes, response: HttpHead, answer: bytes
) -> Iterator[Said]:
    """Yield the observations of schemas in an exchange; `parts`: of the path, behind the API."""
    room, *rest = parts
    value = as_json(answer)
    if room == "ids" and len(rest) >= 2 and rest[0] in _IDS:
        yield from _by_id(rest, response, answer)
    elif not 200 <= response.status < 300:
        return
    elif room == "groups" and len(rest) >= 2 and rest[1] == "artifacts":
        group, artifact, more = rest[0], (rest[2] if len(rest) > 2 else None), rest[3:]
        if request.method in ("POST", "PUT"):
            # Who registers, or looks up what it is to register, sends the content.
            text, named, references = _content(request, asked)
            for said in _meta(value, group, artifact):
                if text is not None:
                    kind = said.format or named
                    found = references or said.references
                    said = said._replace(text=text, format=kind, references=found, firm=False)
                yield said
        elif artifact is not None:
            yield from _of_artifact(group, artifact, more, response, answer)
    elif room == "search":
        yield from _meta(value, None, None)


def _by_id(rest: list[str], response: HttpHead, answer: bytes) -> Iterator[Said]:
    """/ids/globalIds/ID and /ids/contentIds/ID, with or without /references."""
    number = number_of(rest[1])
    if number is None:
        return
    keys = (SchemaKey(_IDS[rest[0]], number),)
    if response.status == 404:
        if is_missing(as_json(answer)):
            yield Said(keys, missing=True)
    elif response.status != 200:
        return
    elif rest[2:] == ["references"]:
        yield Said(keys, references=references_of(as_json(answer)))
    elif len(rest) == 2:
        text, kind = as_text(answer), response.headers.get("x-registry-artifacttype", "")
        if text is not None:
            yield Said(keys, text, FORMATS.get(kind))


def _of_artifact(
    group: str, artifact: str, more: list[str], response: HttpHead, answer: bytes
) -> Iterator[Said]:
    """Read the response to GET of an artifact's versions: contents, references, metadata."""
    value = as_json(answer)
    there: tuple[tuple[str, int], ...] = ()
    if len(more) >= 2 and more[0] == "versions":
        there = subject_of(artifact_name(group, artifact), more[1])
        more = more[2:]
        if more == ["references"] and there[0][1]:
            yield Said(subjects=there, references=references_of(value))
            return
        # v2 gives the content of a version, v3 what is said of it.
        if more in ([], ["content"]) and not (isinstance(value, dict) and "globalId" in value):
            text = as_text(answer)
            if text is not None and there and there[0][1]:
                kind = FORMATS.get(response.headers.get("x-registry-artifacttype", ""))
                yield Said((), text, kind, there)
            return
    yield from _meta(value, group, artifact)


def _content(request: HttpHead, asked: bytes) -> tuple[str | None, Format | None, tuple[Any, ...]]:
    """Return the content that a request registers, its type and references."""
    kind = request.headers.get("x-registry-artifacttype", "")
    value = as_json(asked)
    if isinstance(value, dict):
        # v3 wraps contents, v2 does where there are references.
        first = value.get("firstVersion", value)
        inside = first.get("content") if isinstance(first, dict) else None
        named = format_named(value.get("artifactType", kind))
        if isinstance(inside, dict) and isinstance(inside.get("content"), str):
            return inside["content"], named, references_of(inside.get("references"))
        extended = "extended" in request.headers.get("content-type", "")
        if extended and isinstance(inside, str):
            return inside, named, references_of(value.get("references"))
    return as_text(asked), FORMATS.get(kind), ()


def _meta(value: Any, group: str | None, artifact: str | None) -> Iterator[Said]:
    """Read objects with ids: one, one inside a response, or a list of versions."""
    listed = [value]
    if isinstance(value, dict):
        inner, versions = value.get("version"), value.get("versions")
        listed = [inner] if isinstance(inner, dict) else listed
        listed = versions[:MAX_LIST] if isinstance(versions, list) else listed
    for each in listed:
        if (said := artifact_version(each, group, artifact)) is not None:
            yield said
