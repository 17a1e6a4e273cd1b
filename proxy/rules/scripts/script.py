"""A script file: its functions, loaded again when the file changes."""

from __future__ import annotations

import asyncio
import ctypes
import importlib.util
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

from kafkascope.analyzer.filter.language import FilterError
from kafkascope.captures.inputs.small import read_limited
from kafkascope.dissectors.errors import DissectError
from kafkascope.proxy.rules.faults.fault import FaultError
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.matching import Matcher
from kafkascope.proxy.rules.rules import Look
from kafkascope.proxy.rules.scripts.frame import ScriptFrame, ScriptMistake
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, DeferredVerdict, Verdict

NAMES: Final = ("request", "response")


class ScriptError(Exception):
    """A script that cannot be loaded, or that failed: a sentence with its line."""


class Script:
    """A file with `request(frame)`, `response(frame)`, or both; `FILTER` narrows what they see.
    Shared by its two rules."""

    def __init__(self, path: Path) -> None:
        """`ScriptError`, `FilterError` when it cannot be loaded."""
        self.path = path
        self._changed_ns = 0
        self.edition = 0
        """Another number after each change."""
        self.functions: dict[str, Callable[[Any], None]] = {}
        self.runner = Runner()
        self._states: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
        self._next = 0.0
        self.load()

    def state(self, connection: Any) -> dict[str, Any]:
        return self._states.setdefault(connection, {})

    def matcher(self, frame: InterceptedFrame) -> Matcher:
        """Return the filter, after a look at the file."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LOOK_S
            hub = frame.context.hub
            try:
                if self.load():
                    hub.once(f"script {self.edition}", f"{self.path} was reloaded")
            except (ScriptError, FilterError) as error:
                hub.once(f"script {error}", f"{error}; the previous version stays active")
        return self._matcher

    def load(self) -> bool:
        """Load the file if it changed since; return whether it did. `ScriptError`, `FilterError`:
        it is wrong, and what was loaded before stays."""
        try:
            changed_ns = self.path.stat().st_mtime_ns
        except OSError as error:
            raise ScriptError(f"{self.path}: {error.strerror or error}") from None
        if changed_ns == self._changed_ns:
            return False
        self._changed_ns = changed_ns
        module = self._module()
        functions = {name: getattr(module, name) for name in NAMES if hasattr(module, name)}
        if not functions or not all(map(callable, functions.values())):
            raise ScriptError(f"{self.path}: it has neither request(frame) nor response(frame)")
        text = getattr(module, "FILTER", "")
        if not isinstance(text, str):
            raise ScriptError(f"{self.path}: FILTER is a text")
        self.functions, self._matcher = functions, Matcher(text)
        self.edition += 1
        return True

    def _module(self) -> ModuleType:
        name = f"script_{self.path.stem}"
        # The loader is named: by itself it is found for names that end in .py only.
        loader = SourceFileLoader(name, str(self.path))
        spec = importlib.util.spec_from_file_location(name, self.path, loader=loader)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            # A cached module of the same second would be the old one.
            source = read_limited(self.path)
            code = spec.loader.source_to_code(source, str(self.path))  # type: ignore[attr-defined]
            spec.loader.get_code = lambda _: code  # type: ignore[attr-defined]
            spec.loader.exec_module(module)
        except Exception as error:
            raise ScriptError(self.describe(error)) from None
        finally:
            sys.dont_write_bytecode = before
        return module

    def describe(self, error: BaseException) -> str:
        line = getattr(error, "lineno", None)
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == str(self.path):
                line = frame.lineno
        if isinstance(error, OSError) and error.filename == str(self.path):
            return f"{self.path}: {error.strerror}"
        where = f"{self.path}, line {line}" if line else str(self.path)
        text = error.msg if isinstance(error, SyntaxError) else error  # its str has the line again
        return f"{where}: {type(error).__name__}: {text}"


class TooLong(Exception):
    """A function took too long, and was interrupted."""


class _Interrupt(BaseException):
    """Raised inside of the function that takes too long."""


class Runner:
    """One thread for functions of scripts; another one when a function does not come back."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] | None = None
        self._thread: threading.Thread | None = None

    async def run(self, function: Callable[[], Any], limit_s: float) -> Any:
        if self._jobs is None:
            self._jobs = queue.SimpleQueue()
            self._thread = threading.Thread(target=_work, args=(self._jobs,), daemon=True)
            self._thread.start()
        job: Future[Any] = Future()
        self._jobs.put((function, job))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job), limit_s)
        except TimeoutError:
            self._abandon()
            raise TooLong from None

    def _abandon(self) -> None:
        thread = self._thread
        self.close()
        if thread is not None and thread.ident is not None:
            number = ctypes.c_ulong(thread.ident)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(_Interrupt))

    def close(self) -> None:
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = self._thread = None


def _work(jobs: queue.SimpleQueue[Any]) -> None:
    try:
        while (work := jobs.get()) is not None:
            function, job = work
            if not job.set_running_or_notify_cancel():
                continue  # whoever waited has gone
            try:
                job.set_result(function())
            except Exception as error:
                job.set_exception(error)
    except _Interrupt:
        return


# Between two looks whether the file changed.
LOOK_S: Final = 0.5


class ScriptRule:
    """Asks a function of a script about frames; see `rules.Rule`."""

    def __init__(self, shared: Script, side: int) -> None:
        self._shared = shared
        self.side = side
        self._kind = NAMES[side]
        self.name = f"script {shared.path.name}"

    def __str__(self) -> str:
        return f"{self._kind}s -> script {self._shared.path}"

    def close(self) -> None:
        """End the thread of the script; the next frame begins another one."""
        self._shared.runner.close()

    def look(self, frame: InterceptedFrame) -> Look:
        matcher = self._shared.matcher(frame)
        if self._kind not in self._shared.functions or matcher.by_head(frame) is False:
            return "no"
        return "whole"

    def judge(self, frame: InterceptedFrame) -> DeferredVerdict | None:
        matcher = self._shared.matcher(frame)
        if matcher.by_head(frame) is None and not matcher(frame):
            return None
        return DeferredVerdict(self._decided(frame))

    async def _decided(self, frame: InterceptedFrame) -> Verdict | None:
        shared, hub, path = self._shared, frame.context.hub, self._shared.path
        function = shared.functions.get(self._kind)
        if function is None:
            return None
        seen = ScriptFrame(frame, shared.state(frame.context))
        limit_s = hub.limits.script_s

        def called() -> Verdict | None:
            function(seen)
            return seen.verdict()

        try:
            verdict: Verdict | None = await shared.runner.run(called, limit_s)
        except TooLong:
            about = f"script slow {self._kind}"
            sentence = f"{path}: {self._kind}() took more than {limit_s:g} s and was interrupted"
        except (DissectError, ScriptMistake) as error:
            about = sentence = f"{path}: {self._kind}() of {seen.api} {seen.version}: {error}"
        except Exception as error:
            about = sentence = shared.describe(error)
        else:
            if seen.seconds:
                await asyncio.sleep(seen.seconds)
            return verdict
        hub.metrics.add("errors_total")
        hub.once(about, f"{sentence}; the frame is forwarded unchanged")
        return None


def load_script(path: Path) -> list[ScriptRule]:
    """Return the rules of a script; `FaultError` with file, line and reason."""
    try:
        script = Script(path)
    except (ScriptError, FilterError) as error:
        raise FaultError(str(error)) from None
    return [ScriptRule(script, CLIENT), ScriptRule(script, BROKER)]
