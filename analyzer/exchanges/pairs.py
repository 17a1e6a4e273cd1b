"""What the kernel has read as exchanges, rows and lines of JSON: made when somebody looks.

Most pairs differ from others in numbers alone (`kernel.pairs.OWN`). What they have in common is
made once, by the general way.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkascope.analyzer.bodies.contents import counted
from kafkascope.analyzer.exchanges.column import columns_of
from kafkascope.analyzer.exchanges.limits import LIMITS
from kafkascope.analyzer.exchanges.row_json import NOT_UTF8, json_of_row, members, runs_of
from kafkascope.analyzer.exchanges.rows import Row, collected, row_of
from kafkascope.analyzer.model import Exchange
from kafkascope.kernel.lines import JsonLines
from kafkascope.kernel.pairs import OWN, Pair
from kafkascope.source import compile_function
from kafkascope.times import clock_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.conversation.logged import LoggedLine
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.kernel.path import Path

Item: TypeAlias = "Exchange | Pair | LoggedLine"
"""An exchange, as it was read."""


def exchange_of(item: Item) -> Exchange:
    if isinstance(item, Exchange):
        return item
    exchange: Exchange = item.reader.host.exchange(item) if type(item) is Pair else item.exchange()
    return exchange


def api_key_of(item: Item) -> int | None:
    return item.plan.key if type(item) is Pair else item.api_key


def bytes_of(item: Item) -> int:
    """Return the bytes of the messages of an exchange."""
    if type(item) is Pair:
        return item.end - item.begin + item.response_end - item.response_begin
    if not isinstance(item, Exchange):
        return len(item.line.message)
    return sum(side.spot.wire_bytes for side in (item.request, item.response) if side is not None)


def is_named(item: Item, names: TopicNames) -> bool:
    """Return whether all topics of an exchange have names by now, implied ones included."""
    ids: Iterable[bytes] | None
    if type(item) is Pair:
        ids, session = item.facts.topic_ids, item.session
        if ids is None and session is None:
            return True
    else:
        if item.facts is None:  # which only an exchange may be
            item.facts = counted(collected(item)[0])
        ids, session = item.facts.topic_ids, item.fetch_session
    if ids and any(names.get(each) is None and any(each) for each in ids):
        return False
    if session is None or not session.incremental or session.implied is None:
        return True
    implied = session.implied.topics
    return not any(not isinstance(each, str) and names.get(each) is None for each in implied)


def response_of(exchange: Exchange) -> tuple[Path, int, int] | None:
    """Return the path, the direction of the response, and the time of its last byte."""
    if exchange.response is None:
        return None
    path, response = exchange.connection.path, exchange.response.spot
    return path, 1 - exchange.client_end, response.last_ns


class Rows:
    """Makes the rows of a capture, and their JSON."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[tuple[Any, ...], tuple[Row, Any]] = {}
        """By what pairs have in common: the row of one of them, and the fetch session, for it is
        named by its identity."""
        self._changes = 0
        """Changes of the names of topics by which they are known."""
        self.lines = JsonLines(list(members()), self)

    def both(self, item: Item) -> tuple[Row, Exchange]:
        """Return an exchange with its row."""
        exchange = exchange_of(item)
        return self.row(item if type(item) is Pair else exchange), exchange

    def row(self, item: Item) -> Row:
        """Return the row of an exchange, with the topic names known so far."""
        if type(item) is not Pair or not item.is_ordinary():
            return row_of(exchange_of(item), self._context.names)
        return row_like(self.template(item), self.lines.id(item), item.own())

    def row_in_passing(self, item: Item) -> Row:
        """Return the row of an exchange to be read at once: the next one may be the same object."""
        if type(item) is not Pair or not item.is_ordinary():
            return row_of(exchange_of(item), self._context.names)
        return refilled(self.template(item), self.lines.id(item), item.own())

    def template(self, pair: Pair) -> Row:
        """Return the row of a pair that may differ in its id and `OWN`, and in nothing else."""
        self.check_names()
        about = pair.about()
        known = self._known.get(about)
        if known is None:
            known = row_of(exchange_of(pair), self._context.names), pair.session
            if len(self._known) >= LIMITS.cached_rows:
                self._known.clear()
            if _is_small(known[0], len(json_of_row(known[0]))):
                self._known[about] = known
        return known[0]

    def json(self, items: list[Item]) -> bytes:
        """Return rows as lines of exchange/1."""
        self.check_names()
        try:
            return self.lines.of(items)
        except NOT_UTF8:
            return b"".join(map(self.line, items))

    def check_names(self) -> None:
        """Forget rows and texts that have old names of topics; to be called before `lines`."""
        if self._context.names.changes != self._changes:
            self._changes = self._context.names.changes
            self._known.clear()
            self.lines.forget()

    # What the kernel asks for.

    def texts(self, pair: Pair) -> tuple[tuple[bytes, ...], Any, bool]:
        """Return what pairs have in common as texts, the fetch session, and whether to keep it."""
        row = self.row(pair)
        texts = tuple([write(row) for write in runs_of()])
        return texts, pair.session, _is_small(row, sum(map(len, texts)))

    def line(self, item: Item) -> bytes:
        """Return the line of what is no ordinary pair."""
        return json_of_row(self.row(item)) + b"\n"

    def hash_of(self, file: int) -> Any:
        """Return what hashes places in a file; None where ids are made otherwise."""
        return self._context.hash_of(file)

    def identify(self, pair: Pair) -> str:
        found: str = pair.reader.host.identify(pair)
        return found

    second = staticmethod(clock_of)


def _is_small(row: Row, size: int) -> bool:
    """Return whether to keep a row, or its JSON; `size`: that of the JSON."""
    values = len(row.partitions) + len(row.topics) + len(row.errors)
    return values <= LIMITS.cached_row_values and size <= LIMITS.cached_row_bytes


def row_like(template: Row, id_: str, own: tuple[Any, ...]) -> Row:
    """Return a row with another id and other values of `OWN`."""
    return _makers()[0](template, id_, own)


def refilled(template: Row, id_: str, own: tuple[Any, ...]) -> Row:
    """Return the template with another id and other values of `OWN`: for a row that is not kept, in
    a tenth of the time."""
    return _makers()[1](template, id_, own)


@cache
def _makers() -> tuple[Callable[..., Row], Callable[..., Row]]:
    """Return `row_like` and `refilled` as straight-line code."""
    mine = {"id", *OWN}
    names = [name for name, _ in columns_of(Row)]
    values = ", ".join(name if name in mine else f"row.{name}" for name in names)
    slots = ", ".join(f"row.{name}" for name in OWN)
    source = f"""\
def makers():
    def row_like(row, id, own):
        {", ".join(OWN)} = own
        return Row({values})

    def refilled(row, id, own):
        row.id, {slots} = id, *own
        return row

    return row_like, refilled
"""
    made: Callable[[], tuple[Callable[..., Row], Callable[..., Row]]]
    made = compile_function("makers", source, {"Row": Row}, "rows of pairs")
    return made()
