"""What a request to Apicurio's own API (v2, v3) and its response say about schemas. Stateless."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.model import HttpHead
from kafkascope.analyzer.payloads.gathered import (
    FORMATS,
    MAX_LIST,
    Said,
    artifact_name,
    as_json,
    as_text,
    number_of,
    references_of,
    subject_of,
)
from kafkascope.analyzer.payloads.model import Format, Namespace, SchemaKey

_IDS: Final[dict[str, Namespace]] = {"globalIds": "globalId", "contentIds": "contentId"}
_MISSING: Final = ("Artifact", "Content", "Version")
"""What an error says was not found, where the path is one that the server knows."""


def is_native(parts: list[str]) -> bool:
    """Return whether a path is one of Apicurio's own API, behind whatever prefix."""
    return _start(parts) is not None


def is_missing(error: Any) -> bool:
    """Return whether an error says that there is no such artifact, content or version."""
    name = error.get("name") if isinstance(error, dict) else None
    return isinstance(name, str) and name.startswith(_MISSING) and "NotFound" in name


def _start(parts: list[str]) -> int | None:
    for at in range(len(parts) - 3):
        if parts[at : at + 2] == ["apis", "registry"] and parts[at + 2] in ("v2", "v3"):
            return at + 3
    return None


def said_by(
    parts: list[str], request: HttpHead, asked: bytes, response: HttpHead, answer: bytes
) -> Iterator[Said]:
    """Yield what an exchange says; `parts`: of the path."""
    start = _start(parts)
    if start is None:
        return
    room, *rest = parts[start:]
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
    """GET of an artifact's versions: contents, references, what is said of them."""
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
        found = value.get("artifactType", kind)
        named = FORMATS.get(found) if isinstance(found, str) else None
        if isinstance(inside, dict) and isinstance(inside.get("content"), str):
            return inside["content"], named, references_of(inside.get("references"))
        extended = "extended" in request.headers.get("content-type", "")
        if extended and isinstance(inside, str):
            return inside, named, references_of(value.get("references"))
    return as_text(asked), FORMATS.get(kind), ()


def _meta(value: Any, group: str | None, artifact: str | None) -> Iterator[Said]:
    """Yield what objects with ids say: one, one inside an answer, or a list of versions."""
    if isinstance(value, dict):
        inner = value.get("version")
        listed = value.get("versions")
        if isinstance(listed, list):
            for each in listed[:MAX_LIST]:
                yield from _one(each, group, artifact)
        elif isinstance(inner, dict):
            yield from _one(inner, group, artifact)
        else:
            yield from _one(value, group, artifact)


def _one(value: Any, group: str | None, artifact: str | None) -> Iterator[Said]:
    if not isinstance(value, dict):
        return
    ids: list[SchemaKey] = []
    for name in ("globalId", "contentId"):
        number = number_of(value.get(name))
        if number is not None:
            ids.append(SchemaKey(_IDS[f"{name}s"], number))
    kind = value.get("artifactType", value.get("type", ""))
    if not ids or not isinstance(kind, str) or (kind and kind not in FORMATS):
        return  # OpenAPI, XSD and so on
    named = value.get("artifactId", value.get("id", artifact))
    name = artifact_name(value.get("groupId", group), named)
    yield Said(
        tuple(ids),
        format=FORMATS.get(kind),
        subjects=subject_of(name, value.get("version")),
        references=references_of(value.get("references")),
    )
