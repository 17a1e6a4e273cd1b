"""Passes over an input: each reads it anew, from its start."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafkascope.errors import INTERRUPTED
from kafkascope.library.errors import UsageError

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.reading.options import ReadOptions
    from kafkascope.analyzer.reading.reading import Reading
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.schemas.decoding import Payloads

Read: TypeAlias = "tuple[Row, Exchange, ReadingPass]"

MOST_COUNTED: Final = 24
"""Kinds of statistics that are kept; findings may be asked for of each release."""


class ReadingPass:
    """One reading of a capture, as its exchanges and records need it."""

    def __init__(self, reading: Reading, *, secrets: bool) -> None:
        self._reading = reading
        self.secrets = secrets

    @property
    def names(self) -> TopicNames:
        """Names of topics that are known by now."""
        return self._reading.capture.context.names

    @cached_property
    def payloads(self) -> Payloads | None:
        """Decoder of keys and values by schema."""
        return self._reading.payloads

    def demand_secrets(self, what: str) -> None:
        """Raise `UsageError` where secrets are not wanted."""
        if not self.secrets:
            raise UsageError(f"{what} may hold secrets: open the capture with secrets=True")


class CountedTraffic(NamedTuple):
    """Counts of a pass."""

    found: Any
    """A statistic of the chosen exchanges."""
    whole: Any
    """One of all exchanges; None where all are chosen, or nobody asked for it."""
    names: TopicNames


class Passes:
    """An input that can be read several times, unless it is a pipe."""

    def __init__(self, options: ReadOptions, *, secrets: bool) -> None:
        """Say at once what is wrong with files or the filter."""
        from kafkascope.captures.inputs.opening import is_once

        self._options = options
        self._secrets = secrets
        self._once = any(map(is_once, options.inputs))
        self._used = False
        self._damage: tuple[str, ...] | None = None
        self._counted: dict[Hashable, CountedTraffic] = {}
        if not self._once:
            with self._reading(options.filter_text):
                pass

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the input's files."""
        return self._options.inputs

    def rows(self, filter: str = "") -> Iterator[Read]:
        """Yield the exchanges that the input's filter chooses, and this one."""
        with self._reading(self._both(filter)) as reading:
            reading.rows_suffice = True  # bodies are decoded when somebody asks
            origin = ReadingPass(reading, secrets=self._secrets)
            if self._once:
                _ = origin.payloads  # schemas are taken from the traffic while it is read
            for row, exchange in reading.rows():
                yield row, exchange, origin
            self._ended(reading)

    def count(
        self, key: Hashable, made: Callable[[], Any], whole: Callable[[], Any] | None = None
    ) -> CountedTraffic:
        """Count the chosen exchanges with what `made` makes, unless that was done before; with what
        `whole` makes all exchanges, where these are only some of them."""
        from kafkascope.analyzer.reading.counting import count

        if (counted := self._within_findings(key)) is not None:
            return counted
        if key not in self._counted:
            statistic = made()
            with self._reading(self._options.filter_text) as reading:
                of_all = whole() if whole is not None and reading.is_piece else None
                for each in (statistic, of_all):
                    for detector in getattr(each, "detectors", ()):
                        detector.payloads = reading.payloads
                count(reading, statistic, watch=not self._options.filter_text, whole=of_all)
                self._ended(reading)
                names = reading.capture.context.names
                while len(self._counted) >= MOST_COUNTED:
                    del self._counted[next(iter(self._counted))]
                self._counted[key] = CountedTraffic(statistic, of_all, names)
        return self._counted[key]

    def _within_findings(self, key: Hashable) -> CountedTraffic | None:
        """Return a statistic that findings have counted, which read nearly all of them."""
        for counted in list(self._counted.values()):
            base = getattr(counted.found, "base", None)
            if base is not None and key in base._fields:
                return counted._replace(found=getattr(base, str(key)), whole=None)
        return None

    def damage(self) -> tuple[str, ...]:
        """Return what is wrong with the files; reads them where no pass came to the end yet."""
        if self._damage is None:
            for _ in self.rows():
                pass
        assert self._damage is not None
        return self._damage

    def _both(self, filter: str) -> str:
        first = self._options.filter_text
        return f"({first}) and ({filter})" if first.strip() and filter.strip() else first or filter

    @contextmanager
    def _reading(self, filter: str) -> Iterator[Reading]:
        import click

        from kafkascope.analyzer.reading.reading import Reading

        if self._once and self._used:
            raise UsageError(f"{', '.join(self.names)} can be read once only: save it to a file")
        self._used = True
        try:
            reading = Reading(replace(self._options, filter_text=filter))
        except click.ClickException as error:
            raise UsageError(error.format_message()) from None
        with reading:
            yield reading

    def _ended(self, reading: Reading) -> None:
        """Take note of what a whole pass found; pass on a ctrl+c that ended it."""

        if reading.code == INTERRUPTED:
            raise KeyboardInterrupt
        found = [*reading.capture.source.statistics.damage]
        if reading.capture.damage is not None and reading.capture.damage not in found:
            found.append(reading.capture.damage)
        self._damage = tuple(map(str, found))
