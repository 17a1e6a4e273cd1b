"""The client of the control channel, for the terminal UI and for scripts. Blocking."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from kafkascope.errors import Error
from kafkascope.proxy.control.control import is_listening, runtime_folder, socket_path

_NAME = re.compile(r"proxy-(\d+)\.sock")


class NoProxy(Error, OSError):
    """There is no such proxy, or more than one; a sentence."""

    def __str__(self) -> str:
        return str(self.args[0])


class RequestRefused(Error, ValueError):
    """The proxy refused a request; its reason."""


def running() -> dict[int, Path]:
    """The sockets of our running proxies, by pid."""
    found = {}
    for path in runtime_folder().iterdir():
        name = _NAME.fullmatch(path.name)
        if name is not None and is_listening(path):
            found[int(name[1])] = path
    return found


def find(which: str | None = None) -> Path:
    """The socket of a proxy: of a pid, at a path, or the only one that runs; `NoProxy`."""
    if which is None:
        found = running()
        if len(found) == 1:
            return next(iter(found.values()))
        if not found:
            raise NoProxy("no proxy of yours is running: kafkascope proxy starts one")
        pids = ", ".join(map(str, sorted(found)))
        raise NoProxy(f"several proxies are running, choose one by process ID: {pids}")
    path = socket_path(int(which)) if which.isdecimal() else Path(which)
    if not path.is_socket():
        raise NoProxy(f"no proxy listens at {path}")
    return path


class Attached:
    """A connection to a proxy."""

    def __init__(self, path: Path, timeout_s: float | None = 30.0) -> None:
        """`NoProxy` when no proxy listens there."""
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise NoProxy(f"no proxy responds at {path}: {error.strerror or error}") from None
        self._in = cast("BinaryIO", self._socket.makefile("rb"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close; wakes threads that wait in `events`, `exchanges` or a read."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._in.close()
        self._socket.close()

    def ask(self, do: str, **members: Any) -> dict[str, Any]:
        """The response to a request; `RequestRefused`, `ConnectionError` when the proxy is gone."""
        request = json.dumps({"do": do, **members}, separators=(",", ":"))
        self._socket.sendall(request.encode() + b"\n")
        line = self._in.readline()
        if not line:
            raise ConnectionError("the proxy has ended")
        response: dict[str, Any] = json.loads(line)
        if not response.pop("ok"):
            raise RequestRefused(response["error"])
        return response

    def events(self, every: float = 1.0) -> Iterator[dict[str, Any]]:
        """States and notices until the proxy ends; see docs/control.md."""
        self.ask("watch", every=every)
        self._socket.settimeout(None)
        yield from self._lines()

    def capture(self) -> BinaryIO:
        """A pcapng stream of the traffic from now on."""
        self.ask("capture")
        self._socket.settimeout(None)
        return self._in

    def exchanges(self, filter: str | None = None) -> Iterator[dict[str, Any]]:
        """The exchanges from now on, as `ls --json` prints them."""
        self.ask("exchanges", filter=filter)
        self._socket.settimeout(None)
        return self._lines()

    def _lines(self) -> Iterator[dict[str, Any]]:
        with contextlib.suppress(OSError, ValueError):  # the proxy was killed; we were closed
            for line in self._in:
                yield json.loads(line)
