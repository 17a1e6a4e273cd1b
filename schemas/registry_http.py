"""HTTP requests to one schema registry, bounded in time and size, to the given host only; and a
cache of its responses: a folder for each registry, a file for each schema. I/O.

`http.client` from the standard library does: GET of small JSON, without a pool, cookies or proxies.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import orjson

from kafkascope.errors import Error
from kafkascope.places import cache_home
from kafkascope.private import PrivateFile
from kafkascope.schemas.http_head import HttpHead
from kafkascope.schemas.limits import LIMITS

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_PORTS: Final = {"http": 80, "https": 443}
HEADERS: Final = {
    "Accept": "application/vnd.schemaregistry.v1+json, application/json, */*",
    "Accept-Encoding": "identity",
    "User-Agent": "kafkascope",
    "Connection": "close",
}
USER: Final = "KAFKASCOPE_REGISTRY_USER"
PASSWORD: Final = "KAFKASCOPE_REGISTRY_PASSWORD"
TOKEN: Final = "KAFKASCOPE_REGISTRY_TOKEN"
"""Names of variables of the environment."""


class RegistryError(Error):
    """A registry's response cannot be used; the text is a sentence without secrets."""

    def __init__(self, text: str, *, final: bool = False) -> None:
        """`final`: every request would fail alike."""
        super().__init__(text)
        self.final: Final = final


class Address(NamedTuple):
    """The address of a registry."""

    scheme: str
    host: str
    port: int
    path: str
    """Without a slash at its end."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def address_of(url: str) -> Address:
    """Return the address that a URL names; `ValueError` says what is wrong with it."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("this is not a URL of a registry") from None
    if "@" in parts.netloc:
        # It would be in the history of shells and in our own sentences.
        raise ValueError(
            "the URL of a registry may not contain user and password: set "
            f"{USER} and {PASSWORD}, or {TOKEN}"
        )
    if parts.scheme not in _PORTS or not host:
        raise ValueError(f'"{url}": the URL of a registry is http://HOST:PORT or https://HOST:PORT')
    if parts.query or parts.fragment or not all("!" <= each <= "~" for each in url.strip()):
        raise ValueError("the URL of a registry has a host, a port and a path, in ASCII")
    return Address(parts.scheme, host, port or _PORTS[parts.scheme], parts.path.rstrip("/"))


def credentials() -> str | None:
    token, user = os.environ.get(TOKEN), os.environ.get(USER)
    if token:
        return f"Bearer {token}"
    if user:
        both = f"{user}:{os.environ.get(PASSWORD, '')}".encode()
        return f"Basic {base64.b64encode(both).decode()}"
    return None


class Answer(NamedTuple):
    """A registry's response."""

    target: str
    """Path and query of the request, before any redirect."""
    head: HttpHead
    body: bytes


class HttpClient:
    """Sends GET requests to one registry, one at a time."""

    def __init__(
        self,
        address: Address,
        *,
        authorization: str | None = None,
        ca_file: str | None = None,
        total_seconds: float = LIMITS.total_seconds,
    ) -> None:
        """`ca_file`: certificates that the registry's is verified with, in place of the system's;
        `OSError` where it cannot be read."""
        self.address: Final = address
        self._headers: Final = dict(HEADERS)
        if authorization is not None:
            self._headers["Authorization"] = authorization
        self._seconds: Final = total_seconds
        self._context: ssl.SSLContext | None = None
        if address.scheme == "https":
            self._context = ssl.create_default_context(cafile=ca_file)

    def get(self, path: str) -> Answer:
        """Return the answer to a request; `path`: of the host, quoted, with its query.

        The request runs in a thread, so that the timeout also ends a hanging resolver or handshake.
        """
        out: list[Answer | Exception] = []
        late = threading.Event()
        lines: list[socket.socket] = []

        def ask() -> None:
            try:
                out.append(self._followed(path, lines, late))
            except Exception as error:  # raised in the calling thread
                out.append(error)

        thread = threading.Thread(target=ask, name="registry", daemon=True)
        thread.start()
        thread.join(self._seconds)
        if not out:
            late.set()
            for line in lines:
                with suppress(OSError):  # it is over already
                    line.shutdown(socket.SHUT_RDWR)
            raise RegistryError(f"no response within {self._seconds:g} s")
        (found,) = out
        if isinstance(found, Answer):
            return found
        raise _explained(found)

    def _followed(self, target: str, lines: list[socket.socket], late: threading.Event) -> Answer:
        requested = target
        for _ in range(LIMITS.redirects + 1):
            here = (self.address.host, self.address.port)
            # Another thread can shut the connection down by its duplicate, whatever TLS does.
            with (
                closing(socket.create_connection(here, LIMITS.connect_seconds)) as raw,
                raw.dup() as line,
            ):
                lines.append(line)
                if late.is_set():
                    raise TimeoutError
                head, body = self._once(target, raw)
            if head.status not in _REDIRECTS:
                return Answer(requested, head, body)
            target = self._redirected(target, head.headers.get("location", ""))
        raise RegistryError("too many redirects")

    def _redirected(self, target: str, location: str) -> str:
        here = f"{self.address.scheme}://h:{self.address.port}"
        try:
            parts = urlsplit(urljoin(f"{here}{target}", location))
            port = parts.port or _PORTS.get(parts.scheme)
            relative = parts.hostname == "h" and not urlsplit(location).netloc
        except ValueError:
            raise RegistryError("it redirects without a URL") from None
        same = relative or (parts.hostname or "").lower() == self.address.host.lower()
        if not same or parts.scheme != self.address.scheme or port != self.address.port:
            raise RegistryError("it redirects to another host, which is not followed", final=True)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def _once(self, target: str, raw: socket.socket) -> tuple[HttpHead, bytes]:
        connection = http.client.HTTPConnection(self.address.host, self.address.port)
        with closing(connection):
            connection.sock = raw
            if self._context is not None:
                # The handshake comes when there is something to cut.
                connection.sock = secured = self._context.wrap_socket(
                    raw, server_hostname=self.address.host, do_handshake_on_connect=False
                )
                secured.do_handshake()
            connection.request("GET", target, headers=self._headers)
            with connection.getresponse() as response:
                return self._read(response)

    def _read(self, response: http.client.HTTPResponse) -> tuple[HttpHead, bytes]:
        headers = {name.lower(): value for name, value in response.getheaders()}
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise RegistryError("its response has a content encoding that was not requested")
        body = response.read(LIMITS.answer_bytes + 1)
        if len(body) > LIMITS.answer_bytes:
            raise RegistryError(f"its response has more than {LIMITS.answer_bytes >> 20} MB")
        if response.length:
            raise RegistryError("its response is truncated")
        return HttpHead("", "", response.status, headers), body


def _explained(error: Exception) -> Exception:
    match error:
        case RegistryError():
            return error
        case ssl.SSLCertVerificationError():
            why = f"its certificate is not trusted: {error.verify_message}"
            return RegistryError(why, final=True)
        case ssl.SSLError():
            return RegistryError(f"TLS failed: {(error.reason or 'unknown').lower()}")
        case socket.gaierror():
            return RegistryError("its host name cannot be resolved", final=True)
        case TimeoutError():
            return RegistryError("no response in time")
        case OSError():
            return RegistryError((error.strerror or "the connection failed").lower())
        case http.client.HTTPException() | ValueError():
            # A header of the environment with a line feed is a ValueError, too: it is not repeated.
            return RegistryError("its response is not HTTP")
        case _:
            return error


# --- the cache


class RegistryCache:
    """The cache of one registry; empty where its folder is not our own."""

    def __init__(
        self, url: str, folder: Path | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """`folder`: in place of the user's."""
        name = hashlib.sha256(url.encode()).hexdigest()[:32]
        self.path: Final = (folder or cache_home()) / "registries" / name
        self._clock: Final = clock
        self._usable: bool | None = None

    def get(self, name: str) -> Any:
        """Return the value of a name; None where there is none, or it expired."""
        try:
            with self._file(name).open("rb") as file:
                data = file.read(LIMITS.index_bytes + 1)
            kept = orjson.loads(data)
            age = self._clock() - kept["time"]
            limit = LIMITS.missing_seconds if kept["value"] is False else LIMITS.found_seconds
            return kept["value"] if 0 <= age < limit else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, name: str, value: Any) -> None:
        """Keep a schema; False is one that was not found."""
        if self._usable is None:
            self._usable = self._made()
        if self._usable:
            try:
                with PrivateFile(self._file(name)) as file:
                    kept = {"time": self._clock(), "value": value}
                    file.write(orjson.dumps(kept, default=list))
            except OSError:
                self._usable = False  # a full disk, say: it is a cache

    def _file(self, name: str) -> Path:
        # Names come from traffic.
        return self.path / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"

    def _made(self) -> bool:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.path.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
