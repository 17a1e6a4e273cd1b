"""Steer a running proxy: JSON lines on a Unix socket (0600), or on stdin and stdout.

A request is an object with `do`; the answer has `ok`, and `error` when that is false. An `id` comes
back as it was sent.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissectors.errors import DissectError
from proxy.faults import FaultError, parse_fault
from proxy.held import NotHeld

if TYPE_CHECKING:
    from proxy.faults import Fault
    from proxy.server import KafkaProxy

MAX_LINE: Final = 64 * 1024 * 1024
"""An edited body may be large."""
HOLD: Final = "hold"


def runtime_folder() -> Path:
    """Where the sockets are: ours alone."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base) / "kafkascope" if base else _temporary()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = folder.stat()
    if told.st_uid != os.getuid() or stat.S_IMODE(told.st_mode) & 0o077:
        raise OSError(f"{folder} is open to others")
    return folder


def _temporary() -> Path:
    return Path(tempfile.gettempdir()) / f"kafkascope-{os.getuid()}"


def socket_path(pid: int | None = None) -> Path:
    """The socket of the proxy with that pid (ours)."""
    return runtime_folder() / f"proxy-{pid or os.getpid()}.sock"


class Control:
    """Answers requests about one proxy."""

    def __init__(self, proxy: KafkaProxy, stop: Callable[[], None] | None = None) -> None:
        self.proxy = proxy
        self._stop = stop
        self._server: asyncio.Server | None = None
        self.path: Path | None = None

    async def listen(self, path: Path) -> None:
        """Answer on a socket; `OSError`."""
        path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, path, limit=MAX_LINE)
        finally:
            os.umask(before)
        self.path = path

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(self.answer(line))
                await writer.drain()
        except (OSError, ValueError):
            pass  # it left, or sent a line without end
        finally:
            writer.close()

    async def serve_pipe(self) -> None:
        """Answer on stdin and stdout, until stdin ends."""
        import sys

        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_LINE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            sys.stdout.buffer.write(self.answer(line))
            sys.stdout.buffer.flush()

    def answer(self, line: bytes) -> bytes:
        """The answer to a line."""
        told: Any = None
        try:
            told = json.loads(line)
            if not isinstance(told, dict):
                raise ValueError("an object is wanted")
            out = {"ok": True, **self._do(told)}
        except (ValueError, KeyError, TypeError, FaultError, DissectError, NotHeld) as error:
            reason = f"{error.args[0]!r} is missing" if type(error) is KeyError else str(error)
            out = {"ok": False, "error": reason}
        if isinstance(told, dict) and "id" in told:
            out["id"] = told["id"]
        return json.dumps(out, separators=(",", ":"), default=_plain).encode() + b"\n"

    def _do(self, told: dict[str, Any]) -> dict[str, Any]:
        proxy = self.proxy
        held = proxy.held
        match told.get("do"):
            case "status":
                return proxy.status()
            case "metrics":
                return {"metrics": proxy.hub.metrics.snapshot()}
            case "held":
                return {"held": held.list()}
            case "show":
                return {"body": held.body(told["number"])}
            case "release":
                if told["number"] == "all":
                    return {"released": held.release_all()}
                held.release(told["number"])
                return {"released": 1}
            case "drop":
                held.drop(told["number"])
                return {}
            case "edit":
                held.edit(told["number"], told["body"])
                return {}
            case "rules":
                return {"rules": [_rule(rule) for rule in proxy.rules]}
            case "fault":
                fault = parse_fault(told["rule"], told.get("name", ""))
                proxy.rules.add(fault)
                return {"rule": fault.to_json()}
            case "remove":
                return {"removed": self._remove(told["name"])}
            case "hold":
                return self._hold(told["filter"], told.get("on"))
            case "stop":
                if self._stop is None:
                    raise ValueError("this proxy cannot be stopped from here")
                self._stop()
                return {}
            case other:
                raise ValueError(f"there is no {other!r} to do")

    def _remove(self, name: str) -> int:
        rules = [rule for rule in self.proxy.rules if rule.name == name]
        for rule in rules:
            self.proxy.rules.remove(rule)
        return len(rules)

    def _hold(self, text: str | None, on: str | None) -> dict[str, Any]:
        for side in ("request", "response"):
            if on in (None, side):
                self._remove(f"{HOLD} {side}")
        if text is None:
            return {"rules": []}
        rules = hold_rules(text, on)
        for rule in rules:
            self.proxy.rules.add(rule)
        return {"rules": [rule.to_json() for rule in rules]}


def hold_rules(text: str, on: str | None = None) -> list[Fault]:
    """Rules that hold what matches: requests, unless the filter or `on` asks for responses."""
    from proxy.matching import Matcher

    side = on or ("response" if Matcher(text).early else "request")
    return [parse_fault(f"{text} -> hold on {side}", f"{HOLD} {side}")]


def _rule(rule: Any) -> dict[str, Any]:
    if hasattr(rule, "to_json"):
        told: dict[str, Any] = rule.to_json()
        return told
    return {"name": rule.name, "side": ("request", "response")[rule.side]}


def _plain(value: Any) -> Any:
    from dissectors.jsonform import dumps

    return json.loads(dumps(value))
