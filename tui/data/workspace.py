"""One open input and what is shown of it: rows, filter, notes, findings, colours. No widgets."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from kafkascope.analyzer.filter.decoded.reading import Decoding
from kafkascope.analyzer.session.session import Session
from kafkascope.tui.data.decoding import ONE
from kafkascope.tui.data.mentions import Mentions
from kafkascope.tui.data.view import View
from kafkascope.tui.settings.colours import Colours
from kafkascope.tui.settings.notes import Notes

if TYPE_CHECKING:
    from kafkascope.tui.data.feed import Feed


class Workspace:
    """Holds the state that several controllers read and change."""

    def __init__(
        self, feed: Feed, name: str, *, filter_text: str = "", notes: Notes | None = None
    ) -> None:
        """`FilterError` when the filter is none."""
        self.feed = feed
        self.store = feed.store
        self.name = name
        """The input, as the user named it."""
        self.notes = notes or Notes()
        self.notes.give_names(self.session)
        self.decoding: Decoding | None = None
        """Decodes keys and values for filters; None where nobody wants that."""
        if feed.decodes:
            names = self.session.context.names
            self.decoding = Decoding(feed.payloads, lambda: names, guard=ONE)
        self.notes.known.decoding = self.decoding
        self.notes.known.expected = self.store.decided
        self.view = self.filtered(filter_text)
        self.mentions = Mentions(self.store, self.notes.known)
        self.colours = Colours(self.store, self.notes.known)
        self.colours.read()
        self.activity = ""
        """What runs beside reading, a search or an export; ctrl+c stops it."""
        self.unsettled = True
        """Whether the next tick has rows to filter, or a changed state to show."""

    @property
    def session(self) -> Session:
        return self.store.session

    @property
    def input_name(self) -> str:
        """The input, quoted for a command line, with its key logs and schemas."""
        words = [self.notes.input or self.name]
        for path in self.feed.keylog:
            words += ["--keylog", path]
        words += ["--time-zone", self.feed.zone] if self.feed.zone else []
        words += self.feed.schema_words
        return shlex.join(words)

    @property
    def endless(self) -> bool:
        """Whether the input has no end: a followed file, an interface, a proxy."""
        progress = self.store.progress
        return not progress.done and (progress.following or progress.ring)

    @property
    def yet(self) -> str:
        """The end of a sentence about a missing row: " yet" while more rows may come."""
        return "" if self.store.progress.done and not self.view.behind else " yet"

    def filtered(self, text: str) -> View:
        """Return a view of the rows that a filter selects; `FilterError`."""
        return View(self.store, text, self.notes.known)

    def filters_by(self, *words: str) -> bool:
        return any(word in self.view.text for word in words)

    def notes_changed(self) -> None:
        """Filter again: notes or findings have changed."""
        self.view.noted()
        self.unsettled = True
