"""Schemas in the order in which they came, for those who ask for what is new."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.model import Schema


class ToldSchemas:
    """Schemas that come while input is read: `known.Growing`, for several threads. Of a schema that
    comes again, with another id or subject, the last word is kept."""

    def __init__(self) -> None:
        self.changes = 0
        """Goes up when more is told."""
        self._lock = threading.Lock()
        self._schemas: dict[tuple[str, str], tuple[int, Schema]] = {}
        """By text and origin, with `changes` as it was; the latest are last."""

    def take(self, schemas: Iterable[Schema]) -> None:
        """Take those that are new, or of which more is known."""
        with self._lock:
            for each in schemas:
                place = each.text, each.origin
                self._schemas.pop(place, None)
                self._schemas[place] = self.changes + 1, each
                self.changes += 1

    def since(self, changes: int) -> list[Schema]:
        """Return those that came since `changes` had this value."""
        new: list[Schema] = []
        with self._lock:
            for when, each in reversed(self._schemas.values()):
                if when <= changes:
                    break
                new.append(each)
        return new[::-1]
