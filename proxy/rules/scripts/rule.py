"""The rules of a script: one about requests, one about responses."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from kafkascope.analyzer.filter.language import FilterError
from kafkascope.dissectors.errors import DissectError
from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.faults.fault import FaultError
from kafkascope.proxy.rules.matching import Matcher
from kafkascope.proxy.rules.scripts.frame import ScriptFrame, ScriptMistake
from kafkascope.proxy.rules.scripts.runner import MOST_S, Runner, TooLong
from kafkascope.proxy.rules.scripts.script import NAMES, Script, ScriptError
from kafkascope.proxy.rules.verdicts import Soon, Verdict

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame
    from kafkascope.proxy.rules.rules import Look

LOOK_S: Final = 0.5
"""Between two looks whether the file changed."""


class ScriptRules:
    """A script, and what its two rules share."""

    def __init__(self, path: Path) -> None:
        """`FaultError` when the script or its filter is wrong."""
        try:
            self.script = Script(path)
            self._matcher = Matcher(self.script.filter)
        except (ScriptError, FilterError) as error:
            raise FaultError(str(error)) from None
        self.runner = Runner()
        self._states: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
        self._next = 0.0

    def rules(self) -> list[ScriptRule]:
        """Return the rules, for requests and for responses."""
        return [ScriptRule(self, CLIENT), ScriptRule(self, BROKER)]

    def state(self, connection: Any) -> dict[str, Any]:
        """Return what the script keeps for a connection."""
        return self._states.setdefault(connection, {})

    def matcher(self, frame: InterceptedFrame) -> Matcher:
        """Return the filter, after a look at the file."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + LOOK_S
            hub = frame.context.hub
            try:
                if self.script.load():
                    self._matcher = Matcher(self.script.filter)
                    hub.once(f"script {self.script.edition}", f"{self.script.path} was reloaded")
            except (ScriptError, FilterError) as error:
                hub.once(f"script {error}", f"{error}; the previous version stays active")
        return self._matcher


class ScriptRule:
    """Asks a function of a script about frames; see `rules.Rule`."""

    def __init__(self, shared: ScriptRules, side: int) -> None:
        self._shared = shared
        self.side = side
        self._kind = NAMES[side]
        self.name = f"script {shared.script.path.name}"

    def __str__(self) -> str:
        return f"{self._kind}s -> script {self._shared.script.path}"

    def close(self) -> None:
        """End the thread of the script; the next frame begins another one."""
        self._shared.runner.close()

    def look(self, frame: InterceptedFrame) -> Look:
        """See `rules.Rule`."""
        matcher = self._shared.matcher(frame)
        if self._kind not in self._shared.script.functions or matcher.by_head(frame) is False:
            return "no"
        return "whole"

    def judge(self, frame: InterceptedFrame) -> Soon | None:
        """See `rules.Rule`."""
        matcher = self._shared.matcher(frame)
        if matcher.by_head(frame) is None and not matcher(frame):
            return None
        return Soon(self._decided(frame))

    async def _decided(self, frame: InterceptedFrame) -> Verdict | None:
        shared, hub = self._shared, frame.context.hub
        function = shared.script.functions.get(self._kind)
        if function is None:
            return None
        seen = ScriptFrame(frame, shared.state(frame.context))
        path = shared.script.path

        def called() -> Verdict | None:
            function(seen)
            return seen.verdict()

        try:
            verdict: Verdict | None = await shared.runner.run(called)
        except TooLong:
            hub.metrics.add("errors_total")
            text = f"{self._kind}() took more than {MOST_S:g} s and was interrupted"
            hub.once(
                f"script slow {self._kind}", f"{path}: {text}; the frame is forwarded unchanged"
            )
            return None
        except (DissectError, ScriptMistake) as error:
            hub.metrics.add("errors_total")
            told = f"{path}: {self._kind}() of {seen.api} {seen.version}: {error}"
            hub.once(told, f"{told}; the frame is forwarded unchanged")
            return None
        except Exception as error:
            hub.metrics.add("errors_total")
            told = shared.script.told(error)
            hub.once(told, f"{told}; the frame is forwarded unchanged")
            return None
        if seen.seconds:
            await asyncio.sleep(seen.seconds)
        return verdict


def load_script(path: Path) -> list[ScriptRule]:
    """Return the rules of a script; `FaultError` with file, line and reason."""
    return ScriptRules(path).rules()
