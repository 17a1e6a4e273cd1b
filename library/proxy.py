"""A proxy before a broker, and a capture as a broker, as objects: each is a child process."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from kafkascope.extras import require
from kafkascope.library.children import Child
from kafkascope.library.errors import NotStarted, UsageError

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Severity
    from kafkascope.library.capture import Capture, PathLike
    from kafkascope.library.exchange import Exchange
    from kafkascope.library.finding import Finding
    from kafkascope.library.record import Record
    from kafkascope.proxy.control.attach import Attached

LOOK_S: Final = 0.02
"""Between two looks for held frames."""


class _Service:
    """Something that clients connect to while it is started. A context manager, also of asyncio,
    where starting and ending happen in a thread."""

    def __init__(self, arguments: list[str]) -> None:
        self._arguments = arguments
        self._child: Child | None = None
        self._bootstrap = ""

    def start(self) -> Self:
        """Start it, and return when clients can connect; nothing where it is started."""
        if self._child is None:
            self._child = Child(self._arguments)
            self._bootstrap = self._child.address()
        return self

    def close(self) -> None:
        """End it; return when it is gone."""
        if self._child is not None:
            self._child.stop()

    @property
    def bootstrap(self) -> str:
        """host:port for clients."""
        if not self._bootstrap:
            raise NotStarted(f"this {type(self).__name__} is not started: use `with`, or start()")
        return self._bootstrap

    @property
    def stderr(self) -> str:
        """The last lines of its stderr: notices, warnings, reasons."""
        return "" if self._child is None else self._child.stderr

    said = stderr  # deprecated name

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)


class Proxy(_Service):
    """`kafkascope proxy` before a broker. Clients connect to `bootstrap`; what they say is recorded
    in `path`, which Wireshark opens, too."""

    def __init__(
        self,
        upstream: str,
        *,
        faults: Sequence[str] = (),
        hold: str | None = None,
        path: PathLike | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        """`upstream`: host:port of a broker, several with commas. `faults`: rules from the start.
        `hold`: a filter of frames that are held. `path`: of the recording; without, a temporary one
        that ends with this object. `arguments`: further ones of `kafkascope proxy`."""
        self._folder = Path(tempfile.mkdtemp(prefix="kafkascope-"))  # paths of sockets are short
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self.path = self._folder / "proxy.pcapng" if path is None else Path(path)
        self._control: Attached | None = None
        control = self._folder / "control.sock"
        words = [
            *("proxy", "--upstream", upstream, "--listen", "127.0.0.1:0", "--quiet"),
            *("--until-eof", "--grace", "1s", "--overwrite", "-w", os.fspath(self.path)),
            *("--control", os.fspath(control)),
            *(word for rule in faults for word in ("--fault", rule)),
            *(("--hold", hold) if hold else ()),
            *arguments,
        ]
        super().__init__(words)

    def start(self) -> Self:
        """Start the proxy, and return when clients can connect."""
        if self._child is None:
            require("kafkascope.Proxy")
            from kafkascope.proxy.control.attach import Attached, NoProxy

            super().start()
            try:
                self._control = Attached(self._folder / "control.sock")
            except NoProxy as error:
                self.close()
                raise NotStarted(f"{error}\n{self.stderr}") from None
            weakref.finalize(self, self._control.close)
        return self

    def close(self) -> None:
        """End the proxy. The recording is complete then; a temporary one stays until this object
        is forgotten."""
        if self._control is not None:
            self._control.close()
            self._control = None
        super().close()

    def ask(self, do: str, **members: Any) -> dict[str, Any]:
        """Ask the running proxy for anything that docs/control.md knows. Raises `RequestRefused`
        with its reason."""
        if self._control is None:
            raise NotStarted("this Proxy is not started, or ended")
        return self._control.ask(do, **members)

    def fault(self, rule: str, name: str | None = None) -> str:
        """Add a rule, as for `--fault`: `api == Fetch -> delay 200ms once`; return its name."""
        response = self.ask("fault", rule=rule, **({} if name is None else {"name": name}))
        return str(response["rule"]["name"])

    def faults(self) -> list[dict[str, Any]]:
        """Return all rules, each with how often it `matched` and `fired`."""
        found: list[dict[str, Any]] = self.ask("rules")["rules"]
        return found

    def remove(self, name: str) -> None:
        """Remove a rule."""
        self.ask("remove", name=name)

    def clear(self) -> None:
        """Remove all rules."""
        self.ask("clear")

    def hold(self, filter: str | None) -> None:
        """Hold the frames that match a filter until they are released; None ends it."""
        self.ask("hold", filter=filter)

    def held(self, count: int = 1, timeout: float = 30.0) -> list[dict[str, Any]]:
        """Return what is held, oldest first, as soon as there are `count`; `UsageError` when there
        are fewer after `timeout` seconds."""
        end = time.monotonic() + timeout
        while True:
            found: list[dict[str, Any]] = self.ask("held")["held"]
            if len(found) >= count:
                return found
            if time.monotonic() > end:
                raise UsageError(f"{len(found)} frames are held, not {count}")
            time.sleep(LOOK_S)

    def release(self, number: int | str = "all") -> None:
        """Let held frames go on."""
        self.ask("release", number=number)

    def drop(self, number: int) -> None:
        """Let a held frame never arrive."""
        self.ask("drop", number=number)

    def capture(self, filter: str = "", **how: Any) -> Capture:
        """Return what has passed by now, or all that had passed when it ended; `how` as `open`
        has it."""
        from kafkascope.library.capture import open as open_capture

        if self._control is not None:
            self.ask("flush")
        return open_capture(self.path, filter=filter, **how)

    def exchanges(self, filter: str = "") -> list[Exchange]:
        """Return the exchanges that have passed by now."""
        return list(self.capture(filter))

    def records(self, filter: str = "") -> list[Record]:
        """Return the records that have passed by now."""
        return list(self.capture(filter).records())

    def findings(self, level: Severity = "chat") -> list[Finding]:
        """Return what is wrong with what has passed by now."""
        return self.capture().findings(level)


class Broker(_Service):
    """`kafkascope serve`: a capture that answers clients as a broker does."""

    def __init__(self, path: PathLike, *, arguments: Sequence[str] = ()) -> None:
        """`arguments`: further ones of `kafkascope serve`."""
        listen = ("--listen", "127.0.0.1:0", "--until-eof")
        super().__init__(["serve", os.fspath(path), *listen, *arguments])
