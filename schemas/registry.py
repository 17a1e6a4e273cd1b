"""Client of a schema registry; requests each schema once: Confluent's REST API, which Karapace and
Apicurio (/apis/ccompat/v7) speak, or Apicurio's own (/apis/registry/v2, v3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from kafkascope.schemas import rest
from kafkascope.schemas.http_head import HttpHead
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Reference, Schema, SchemaKey
from kafkascope.schemas.observed import ObservedSchemas
from kafkascope.schemas.parts import FORMATS
from kafkascope.schemas.registry_http import (
    Answer,
    HttpClient,
    RegistryCache,
    RegistryError,
    address_of,
    credentials,
)

_NATIVE: Final = re.compile(r"/apis/registry/v[23]$")
_COMPATIBLE: Final = re.compile(r"/apis/ccompat/v\d+$")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_PLURALS: Final = {"globalId": "globalIds", "contentId": "contentIds"}


class Registry:
    """Client of one registry; failures go to `problems`, never an exception."""

    def __init__(
        self,
        url: str,
        *,
        ca_file: str | None = None,
        client: HttpClient | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """`ValueError` where the URL is none or holds a password, `OSError` where `ca_file` cannot
        be read. User, password and token come from the environment. `client`: in place of the
        network. `tell`: called with each problem."""
        address = address_of(url)
        self.url: Final = str(address)
        authorization = credentials()
        self._client: Final = client or HttpClient(
            address, authorization=authorization, ca_file=ca_file
        )
        base = address.path
        self._base: Final = base
        self._native: Final = _NATIVE.search(base) is not None
        ours = base if self._native else _COMPATIBLE.sub("/apis/registry/v2", base)
        self._by_kind: Final = ours if self._native or ours != base else None
        """Base path of requests by Apicurio's ids."""
        self._cache: Final = RegistryCache(self.url)
        self._known: dict[str, Schema | None] = {}
        self._failures = 0
        self._missing = 0
        self._given_up = False
        self._tell: Final = tell
        self.problems: list[str] = []
        """Sentences for the user."""
        if authorization and address.scheme == "http" and address.host not in _LOOPBACK:
            self._problem("the password or token is sent unencrypted: use https")

    def schema(self, key: SchemaKey) -> Schema | None:
        """Return the schema of a key; None where the registry lacks it, or failed."""
        paths = self._paths(key)
        return None if paths is None else self._look_up(str(key), paths, (key,))

    def with_references(self, key: SchemaKey) -> list[Schema]:
        """Return the schema of a key and all that it refers to, itself first."""
        first = self.schema(key)
        if first is None:
            return []
        found = [first]
        seen = {each[1:] for each in first.references}
        waiting = list(first.references)
        while waiting and len(found) <= LIMITS.references:
            reference = waiting.pop()
            if not reference.subject or reference.version <= 0:
                continue
            there = (reference.subject, reference.version)
            schema = self._look_up(f"subject {there}", self._version_paths(*there), ())
            if schema is not None:
                found.append(schema)
                for each in schema.references:
                    if each[1:] not in seen:
                        seen.add(each[1:])
                        waiting.append(each)
        return found

    # --- where what is asked for

    def _paths(self, key: SchemaKey) -> list[str] | None:
        """Return the paths to request: the schema itself, then its metadata; None where the API has
        none for the key."""
        if key.namespace in _PLURALS and self._by_kind is not None:
            path = f"{self._by_kind}/ids/{_PLURALS[key.namespace]}/{key.value}"
            more = "?returnArtifactType=true" if self._by_kind.endswith("/v3") else ""
            return [f"{path}{more}", f"{path}/references"]
        if self._native:
            return None
        if key.namespace == "id":
            path = f"{self._base}/schemas/ids/{key.value}"
            return [path, f"{path}/versions"]
        if key.namespace == "guid":
            return [f"{self._base}/schemas/guids/{quote(str(key.value), safe='')}"]
        return None

    def _version_paths(self, subject: str, version: int) -> list[str]:
        if not self._native:
            return [f"{self._base}/subjects/{quote(subject, safe='')}/versions/{version}"]
        group, slash, artifact = subject.partition("/")
        if not slash:
            group, artifact = "default", subject
        names = f"{self._base}/groups/{quote(group, safe='')}/artifacts/{quote(artifact, safe='')}"
        path = f"{names}/versions/{version}"
        content = "/content" if self._base.endswith("/v3") else ""
        return [f"{path}{content}", f"{path}/references"]

    # --- requests

    def _look_up(self, name: str, paths: list[str], keys: tuple[SchemaKey, ...]) -> Schema | None:
        if name in self._known:
            return self._known[name]
        kept = self._cache.get(name)
        found = None
        if kept is not None:
            found = _restored(kept, self.url)
        if kept is None or (kept is not False and found is None):
            if self._given_up:
                return None
            try:
                found = self._from(paths, keys)
            except RegistryError as error:
                self._failed(error)
                return None
            self._failures = 0
            self._cache.put(name, found or False)
            self._missing += found is None
            if self._missing > LIMITS.missing:
                self._given_up = True
                self._problem(
                    f"it lacks more than {LIMITS.missing} schemas; no more requests are sent to it"
                )
        self._known[name] = found
        return found

    def _from(self, paths: list[str], keys: tuple[SchemaKey, ...]) -> Schema | None:
        observed = ObservedSchemas("registry")
        for number, path in enumerate(paths):
            answer = self._client.get(path)
            if not number and self._lacks(answer, keys):
                return None
            request = HttpHead("GET", answer.target, 0, {})
            for schema in rest.observations(request, b"", answer.head, answer.body):
                observed.add("", self.url, schema)
            if not observed.schemas():
                if observed.problems:
                    raise RegistryError(observed.problems[0].removeprefix(f"{self.url}: "))
                raise RegistryError("its response contains no schema")
        return observed.schemas()[0]

    def _lacks(self, answer: Answer, keys: tuple[SchemaKey, ...]) -> bool:
        """Return whether a response means that there is no such schema; `RegistryError` for other
        errors."""
        status = answer.head.status
        if status == 200:
            return False
        if status in (401, 403):
            raise RegistryError(f"access is denied ({status})", final=True)
        if status != 404:
            raise RegistryError(f"it returned status {status}")
        # Registries of Confluent had no GUIDs before 8.0.
        if rest.is_missing(answer.body) or any(key.namespace == "guid" for key in keys):
            return True
        raise RegistryError("it has no such path (404): is this the URL of a registry?")

    def _failed(self, error: RegistryError) -> None:
        self._failures += 1
        if error.final or self._failures >= LIMITS.failures:
            self._given_up = True
            self._problem(f"{error}; no more requests are sent to it")

    def _problem(self, text: str) -> None:
        self.problems.append(f"registry {self.url}: {text}")
        if self._tell is not None:
            self._tell(self.problems[-1])


# --- schemas as the cache keeps them


def _restored(kept: Any, url: str) -> Schema | None:
    try:
        keys = tuple(SchemaKey(space, value) for space, value in kept["keys"])
        subjects = tuple((str(subject), int(version)) for subject, version in kept["subjects"])
        references = tuple(Reference(str(n), str(s), int(v)) for n, s, v in kept["references"])
        kind, text = kept["format"], kept["text"]
        if kind not in FORMATS.values() or not isinstance(text, str):
            return None
        return Schema(kind, text, keys, subjects, references, "registry", url)
    except (KeyError, TypeError, ValueError):
        return None
