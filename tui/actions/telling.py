"""The words around the panes: header, titles, tabs, the state of the filter, hints."""

from __future__ import annotations

from typing import Final

from textual import events, on

from kafkascope.analyzer.text import padded
from kafkascope.tui.actions.filtering import Filtering
from kafkascope.tui.actions.mentioning import Mentioning
from kafkascope.tui.actions.moving import Moving
from kafkascope.tui.document.tree import TABS
from kafkascope.tui.screens import SCREENS
from kafkascope.tui.settings.palette import STYLES

FOOTERS: Final = (
    " / filter   Enter open   f follow   e error   1-8 screens   ? keys   q quit",
    " Enter exchanges   tab pane   R next tab   1-8 screens   ? keys   q back",
    " Tab take   up down choose   Enter apply   Esc leave and clear",
    " Enter do it   Esc leave",
)


TITLE: Final = 30
"""Columns of the header for what is shown."""


REMARK_S: Final = 30.0
"""Seconds that a remark about the capture stays."""


class Telling(Mentioning, Filtering, Moving):
    """What is said all the time."""

    _remark = ""

    def say(self) -> None:
        """Header, heading, tabs, filter state, footer."""
        if not self.is_running:
            return
        total, shown = len(self.feed.store), len(self.view_)
        noun = "exchange" if total == 1 else "exchanges"
        count = f"{shown:,} of {total:,} shown" if self.view_.wanted else f"{total:,} {noun}"
        if self.notes.ignored:
            count += f", {len(self.notes.ignored):,} ignored"
        state = self.busy_with or self._reading()
        if self.busy_with:
            state += "  ctrl+c stops"
        tail = "newest row" if self.following else "End: newest" if self.endless() else ""
        screen = SCREENS[self.host.number][0] if self.host.number in SCREENS else ""
        title = f" kafkascope  {self.source_name}   {screen}".rstrip()
        found = self.finding_words()
        counting = "" if self.endless() else self.host.board_so_far()
        parts = [count, found, self.clock_words(), tail, counting, state]
        # What matters least goes first when there is no room.
        for least in (2, 1, 0) if counting or state else (2, 1):
            if len("   ".join(filter(None, parts))) + 1 + TITLE > self.size.width:
                parts[least] = ""
        right = "   ".join(filter(None, parts)) + " "
        room = max(1, self.size.width - len(right) - 1)
        self._static("header", f"{padded(self.glyphs.text(title), room)} {right}")
        width = max(1, self.list.scrollable_content_region.width)
        self._static("heading", self.list.heading(width))
        self._say_tabs()
        self._say_filter()
        focused = self.focused.id if self.focused is not None else ""
        which = {"filter": 2, "prompt": 3}.get(focused or "", int(self.host.board is not None))
        if self._remark and which == 0:
            self._static("footer", f" {self._remark}   {FOOTERS[0]}", STYLES["?"])
        else:
            self._static("footer", FOOTERS[which], STYLES["dim"])

    def remark(self, text: str) -> None:
        """Say something in the place of the hints for a while: a notification would cover the
        detail."""
        self._remark = text
        self.say()
        if text:
            self.set_timer(REMARK_S, lambda: self.remark(""))

    def _reading(self) -> str:
        store = self.feed.store
        progress = store.progress
        if progress.failure:
            return "! incomplete"
        if progress.stopped and progress.done:
            return "stopped"
        if progress.done:
            return ""
        if progress.following or progress.indexed:
            words = "following" if progress.following else ""
            if store.whole < len(store):
                words += f"  bodies {store.share()} %"
                if self.view_.partial and self.view_.order is not None:
                    words += ": order partial"
            return f"{words.strip()}  ctrl+c stops"
        if 0 < progress.read < progress.size:
            share = 100 * progress.read // progress.size
            return f"reading {share} %{progress.left()}  ctrl+c stops"
        word = "live" if progress.ring else "reading"
        return f"{word}{progress.rate()}  ctrl+c stops"

    def _say_tabs(self) -> None:
        tabs = "  ".join(f"[{tab}]" if tab == self.tab else f" {tab} " for tab in TABS)
        item = self.detail.item
        place = self.hex.space.name if self.hex.space is not None else ""
        if item is not None and item.end > item.start and self.hex.space is self.space_of(item):
            place = f"{place}  {item.label}: bytes {item.start}-{item.end - 1}"
        room = max(1, self.query_one("#below").size.width - len(tabs) - len(place) - 1)
        self._static("tabs", f"{tabs}{' ' * room}{place}")

    def _say_filter(self) -> None:
        view = self.view_
        if self.filter_error:
            self._static("filterstate", self.filter_error, STYLES["!"])
        elif not view.text:
            self._static("filterstate", "")
        elif view.behind:
            if view.partial:
                text = f"bodies {self.feed.store.share()} %: partial"
            else:
                text = f"scanning {int(100 * view.scanned)} %"
            self._static("filterstate", text, STYLES["dim"])
        elif "finding" in view.text and (pending := self.findings_pending()):
            self._static("filterstate", f"{pending}: partial", STYLES["dim"])
        else:
            self._static("filterstate", f"valid{', fast' if view.fast else ''}", STYLES["label"])

    @on(events.DescendantFocus)
    def focus_moved(self) -> None:
        """The hints are about what has the focus."""
        self.say()
