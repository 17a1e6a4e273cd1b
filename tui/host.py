"""Interface of the program for boards and controllers: the app, and numbers for boards."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.widget import Widget
from textual.widgets import Static

from kafkascope.analyzer.filter.bind import bind, fields_of
from kafkascope.analyzer.filter.fields import DECODED, NOTED
from kafkascope.analyzer.render.times import Times
from kafkascope.tui.data.numbers import Numbers, StoreNumbers
from kafkascope.tui.data.view import View
from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.process.control import Control, ProxyWatch
from kafkascope.tui.settings.palette import Glyphs
from kafkascope.tui.stack import ViewState
from kafkascope.tui.views.dialogs import Picker
from kafkascope.tui.views.exchanges import ExchangeList

Counted = Callable[[str], Numbers]
"""Filter -> its numbers."""


class Shell(App[None]):
    """All of the app that controllers see besides what Textual's apps have: words, ways from one
    noun to another, the focus. Controllers do not see each other."""

    glyphs: Glyphs
    hello = ""
    """A notification for the start; the first screen that is shown clears it."""
    ask: Callable[..., None]
    """Asks for a line of text."""
    typed: Callable[[], str | None]
    """Returns the answer so far; None while nothing is asked for."""
    remark: Callable[[str], None]
    """Says something about the capture in the footer, for a while."""
    look: Callable[..., None]
    """Decodes the exchange under the cursor; with `anew` even if it is shown already."""
    look_again: Callable[[], None]
    """Makes the context of the exchange again."""
    show_filter: Callable[[str], None]
    show_exchange: Callable[[int], None]
    show_limited: Callable[[int, str], Coroutine[Any, Any, None]]
    show_screen: Callable[[int], Coroutine[Any, Any, None]]
    prepare_filter: Callable[[str], None]
    here: Callable[[], ViewState]
    push_view: Callable[..., None]
    restore_view: Callable[[ViewState], None]
    step: Callable[..., bool]
    """Puts the cursor on the next row that a mask over all rows selects."""
    findings_pending: Callable[[], str]
    """Tells what is left to be done before findings are final; empty when they are."""
    focus_view: Callable[[], None]
    """Gives the focus to the list, or to the board that is shown."""
    take_choice: Callable[[], bool]
    """Completes what is typed into the filter; False when nothing is typed or known."""
    shows_context: Callable[[], bool]
    in_list: Callable[[], bool]
    """Returns whether the list was the last pane to have the focus."""
    stop_activity: Callable[[], None]
    update_status: Callable[[], None]
    """Draws header, titles, tabs, the state of the filter and the footer again."""

    def say(self, text: str, severity: Any = "information") -> None:
        self.notify(self.glyphs.text(text), severity=severity, markup=False)

    def pick(
        self,
        title: str,
        choices: Sequence[tuple[str, str]],
        chosen: Callable[[str], object],
        here: str | None = None,
        **options: Any,
    ) -> None:
        """Let the user choose one of (key, text); `chosen` gets its key, unless there was no
        choice. `here` is the key of what is in use; `options` are those of `Picker`."""

        def done(key: str | None) -> None:
            if key is not None:
                chosen(key)

        self.push_screen(Picker(title, choices, self.glyphs, here, **options), done)

    def write(self, name: str, text: str, style: Style) -> None:
        """Put a text into a line of the main screen, by its id."""
        new = self.glyphs.rich(text, style)
        for widget in self.screen_stack[0].query(f"#{name}").results(Static):
            old = widget.content
            if not isinstance(old, Text) or (old.plain, old.style) != (new.plain, style):
                # Another layout is for those that are as wide as their text.
                widget.update(new, layout=bool(widget.styles.is_auto_width))

    def put_on_clipboard(self, text: str, words: str = "") -> None:
        """Copy through the terminal (OSC 52), which works over ssh and in tmux, and say so."""
        self.copy_to_clipboard(text.encode("utf-8", "replace").decode())
        self.say(words or f"Copied {len(text):,} characters.")

    def focus_now(self, widget: Widget) -> None:
        """Give a widget the focus before the next key is handled: `Widget.focus` does so later, and
        what is typed quickly would go astray."""
        self.screen_stack[0].set_focus(widget)


class Host:
    """Counts numbers for the boards, and leads them to the rest of the program."""

    def __init__(
        self,
        workspace: Workspace,
        shell: Shell,
        exchanges: ExchangeList,
        counted: Counted | None = None,
        control: Control | None = None,
    ) -> None:
        self.workspace, self.shell, self.list = workspace, shell, exchanges
        self.store, self.glyphs = workspace.store, shell.glyphs
        self.proxy = None if control is None else ProxyWatch(control)
        """The proxy whose traffic is shown."""
        self._counted = counted or (lambda text: StoreNumbers(self.store, text))
        self._all: Numbers | None = None
        self._some: Numbers | None = None
        """Numbers of what the filter selects."""
        self._some_text = ""
        """That filter."""
        self._some_view: View | None = None
        """What answers it in the list."""

    def statistic(self, name: str, *, limited: bool) -> Any | None:
        """Return an accumulator as it is by now, of everything or of what the filter selects; None
        as long as it is not there."""
        return self._numbers(limited=limited).get(name)

    def so_far(self, *, limited: bool) -> str:
        """Return how far counting is; empty when accumulators are of the whole input."""
        numbers = self._numbers(limited=limited)
        if numbers.done:
            return numbers.failure
        if numbers.following:
            return "counting new traffic"
        return "counting ..." if numbers.share is None else f"counting {numbers.share} %"

    def _numbers(self, *, limited: bool) -> Numbers:
        view = self.workspace.view
        text = view.filter_text if limited else ""
        if not text:
            self._all = self._all or self._counted("")
            return self._all
        if self._some is None or self._some_text != text or self._some_view is not view:
            if self._some is not None:
                self._some.close()
            # Only this process knows marks, comments, which exchanges findings are about, and which
            # schemas have come.
            mine = fields_of(bind(text)) & (NOTED | DECODED)
            self._some = StoreNumbers(self.store, view=view) if mine else self._counted(text)
            self._some_text, self._some_view = text, view
        return self._some

    def close(self) -> None:
        for numbers in (self._all, self._some):
            if numbers is not None:
                numbers.close()

    def times(self) -> Times:
        """Return how boards write times: as the list."""
        return self.list.clock()
