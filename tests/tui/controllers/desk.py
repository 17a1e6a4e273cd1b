"""Controllers without a terminal: a shell that notes what it is asked for, a list without a
widget."""

import time
from collections.abc import Callable
from queue import Queue
from types import SimpleNamespace
from typing import Any

from kafkascope.tui.controllers.controller import ControllerContext
from kafkascope.tui.data.store import Store
from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.settings.palette import Glyphs
from tests.tui.pilots import StillFeed


class Rows:
    """The cursor of the list."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.cursor = 0
        self.times = "u"
        self.reference_ns: int | None = None
        self.extra: list[str] = []
        self.has_focus = True

    @property
    def index(self) -> int | None:
        view = self.workspace.view
        return view[self.cursor] if self.cursor < len(view) else None

    @property
    def number(self) -> int | None:
        return None if self.index is None else self.workspace.session.columns["number"][self.index]

    def count(self) -> int:
        return len(self.workspace.view)

    def changed(self) -> None:
        self.cursor = max(0, min(self.cursor, self.count() - 1))

    def move_to(self, line: int, *, tell: bool = True) -> None:
        self.cursor = max(0, min(line, self.count() - 1))

    def stay_on(self, index: int | None) -> None:
        self.cursor = 0 if index is None else self.workspace.view.place_of(index)

    def columns(self, width: int) -> list[Any]:
        return []

    def text(self, width: int) -> str:
        return f"row {self.number}"


class Shell:
    """Notes what a controller asks for; questions are answered by `choose` and `answer`."""

    def __init__(self) -> None:
        self.glyphs = Glyphs()
        self.host = SimpleNamespace(board=None, number=1, proxy=None, filter_changed=lambda: None)
        self.size = SimpleNamespace(width=160, height=50)
        self.focused = None
        self.told: list[str] = []
        self.clipboard: list[str] = []
        self.filters: list[str] = []
        self.prepared: list[str] = []
        self.opened: list[Any] = []
        self.codes: list[int] = []
        self.stopped = 0
        self.question: tuple[str, Callable[[str], object], str] | None = None
        self.choices: list[tuple[str, str]] = []
        self.later: Queue[Callable[[], Any]] = Queue()
        self._chosen: Callable[[str], object] = lambda key: None

    def choose(self, key: str) -> None:
        """As the user would; a choice must be there."""
        assert key in dict(self.choices)
        self._chosen(key)

    def answer(self, text: str) -> None:
        self.question[1](text)

    def until(self, done: Callable[[], bool]) -> None:
        """Do what threads ask for, until something is so."""
        end = time.monotonic() + 60
        while not done():
            assert time.monotonic() < end
            self.later.get(timeout=60)()

    def say(self, text: str, severity: Any = "information") -> None:
        self.told.append(text)

    def pick(
        self,
        title: str,
        choices: list[tuple[str, str]],
        chosen: Callable[[str], object],
        here: str | None = None,
    ) -> None:
        self.choices, self._chosen = choices, chosen

    def ask(self, what: str, answer: Callable[[str], object], text: str = "") -> None:
        self.question = what, answer, text

    def typed(self) -> str | None:
        return None if self.question is None else self.question[2]

    def push_screen(self, screen: Any, done: Callable[[Any], None] | None = None) -> None:
        self.opened.append(screen)

    def put_on_clipboard(self, text: str) -> None:
        self.clipboard.append(text)

    def show_filter(self, text: str) -> None:
        self.filters.append(text)

    def prepare_filter(self, text: str) -> None:
        self.prepared.append(text)

    def call_later(self, callback: Callable[..., Any], *args: Any) -> bool:
        self.later.put(lambda: callback(*args))
        return True

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Any:
        return SimpleNamespace(stop=lambda: None)

    def exit(self, *, return_code: int = 0, message: Any = None) -> None:
        self.codes.append(return_code)

    def stop_activity(self) -> None:
        self.stopped += 1

    def findings_pending(self) -> str:
        return ""

    def in_list(self) -> bool:
        return True

    def update_status(self) -> None:
        pass

    def look(self, *, anew: bool = False) -> None:
        pass

    look_again = push_view = focus_view = update_status


def desk(store: Store, **options: Any) -> tuple[ControllerContext, Shell]:
    """What a controller is given, and the shell that notes what it does."""
    workspace, shell = Workspace(StillFeed(store), "libraries.pcap", **options), Shell()
    pane = SimpleNamespace(has_focus=False, item=None, space=None, span=(0, 0))
    context: Any = (workspace, shell, shell.host, Rows(workspace), pane, pane)
    return ControllerContext(*context), shell
