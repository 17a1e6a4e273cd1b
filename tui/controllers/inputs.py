"""The input: another one in its place, the same again, and leaving."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from textual.app import SystemCommand

from kafkascope.tui.controllers.controller import Controller, ControllerContext
from kafkascope.tui.document.values import ports
from kafkascope.tui.settings.config import recent


class InputsController(Controller):
    """Ends the program, and keeps for its caller what to show next."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.wanted: str | None = None
        """The file to show in the place of this one; empty: this one again."""
        self.ports: frozenset[int] = frozenset()
        """Ports to decode as Kafka when this one is shown again."""
        self.once = ""
        """Why this one cannot be shown again; empty when it can."""

    def commands(self) -> Iterable[SystemCommand]:
        for name in recent():
            path = Path(name)
            yield SystemCommand(f"Open {path.name}", str(path.parent), partial(self.reopen, name))

    def stays(self, *, other: bool = False) -> bool:
        """Return whether this input must stay, and tell the user why: what was read would be lost.
        `other`: whether another input is wanted, not this one again."""
        why = "" if other else self.once
        if self.host.proxy is not None:
            why = "A proxy has no other input. Press Q to quit."
        if why:
            self.shell.say(why, "warning")
        return bool(why)

    def reopen(self, name: str) -> None:
        """Show another file in the place of this one; empty: this one again."""
        if self.stays(other=bool(name)):
            return
        self.wanted = name
        self.leave()

    def leave(self) -> None:
        self.shell.exit(return_code=self.workspace.store.progress.code)

    def stop(self) -> None:
        """Stop the current activity: an export, a search, reading; or show how to quit."""
        if self.workspace.activity:
            self.shell.stop_activity()
        elif self.workspace.store.progress.done:
            self.shell.say("Nothing to stop. Q quits.")
        else:
            self.workspace.feed.stop()

    def ask_file(self) -> None:
        if self.stays(other=True):
            return
        choices = [(name, name) for name in recent()]

        def chosen(name: str) -> None:
            path = Path(name).expanduser()
            if path.exists():
                self.reopen(str(path))
            else:
                self.shell.say(f"No such file or folder: {name}", "warning")

        self.shell.pick("Open a capture", choices, chosen, free=True)

    def ask_ports(self) -> None:
        if not self.stays():
            self.shell.ask("Ports to decode as Kafka (9094, 9100-9110)", self._read_again)

    def _read_again(self, text: str) -> None:
        try:
            self.ports = ports(text)
        except ValueError as error:
            self.shell.say(str(error), "warning")
        else:
            self.reopen("")
