"""The context of an exchange: the user's comment, findings that mention it, its neighbours on the
connection, the next of its kind. Read from columns, within a bounded distance."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.exchanges.column import NONE
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.text import wrapped
from kafkascope.tui.data.store import Store
from kafkascope.tui.settings.notes import Notes

if TYPE_CHECKING:
    from kafkascope.analyzer.findings import Finding

# Rows that are searched in each direction.
LOOKED_AT: Final = 20_000
NEIGHBOURS: Final = 4
# Columns of wrapped sentences: the narrowest pane shows them.
WIDTH: Final = 70


def around(
    store: Store,
    notes: Notes,
    number: int,
    findings: Collection[Finding] = (),
    pending: str = "",
) -> list[str]:
    """Return lines, indented by two blanks a level. `findings` are those that mention the exchange;
    `pending`: why there may be more of them."""
    from kafkascope.analyzer.findings.evidence import overflowing_rules

    session = store.session
    here = session.index_of(number)
    if here is None:
        return []
    comment = notes.comments.get(number)
    near = (*reversed(_neighbours(store, here, -1)), here, *_neighbours(store, here, 1))
    same = (("previous", _same_kind(store, here, -1)), ("next", _same_kind(store, here, 1)))
    lines = (
        f"comment: {comment}" if comment else "",
        "marked" if number in notes.marked else "",
        "ignored; i restores it" if number in notes.ignored else "",
        *(line for finding in findings for line in _finding(finding)),
        *(
            f"there may be more findings of {name} here: the findings have all"
            for name in overflowing_rules(findings)
        ),
        f"findings so far: {pending}" if pending else "",
        "on this connection",
        *(f"  {_line(store, index, here)}" for index in near),
        *(
            f"{word} of this kind: {_line(store, index, here)}"
            for word, index in same
            if index is not None
        ),
    )
    return [line for line in lines if line]


def _finding(finding: Finding) -> Iterator[str]:
    head, *rest = wrapped(f"{finding.severity}: {finding.text}", WIDTH, breaks=True)
    yield head if finding.severity == "error" else f"finding, {head}"
    yield from (f"  {line}" for line in rest)
    for place, line in enumerate(wrapped(f"fix: {finding.advice}", WIDTH, breaks=True)):
        yield f"  {'  ' if place else ''}{line}"
    yield f"  evidence: finding == {finding.name}"


def _rows(store: Store, here: int, by: int) -> Iterator[int]:
    # Ask before taking columns: one that becomes wider is another array from then on.
    end = here + by * LOOKED_AT
    return iter(range(here + by, max(-1, end) if by < 0 else min(len(store), end), by))


def _neighbours(store: Store, here: int, by: int) -> list[int]:
    rows = _rows(store, here, by)
    column = store.session.columns["connection"]
    mine = column[here]
    return list(islice((index for index in rows if column[index] == mine), NEIGHBOURS))


def _same_kind(store: Store, here: int, by: int) -> int | None:
    rows, session = _rows(store, here, by), store.session
    apis, clients = session.columns["api"], session.columns["client_id"]
    kind = apis[here], clients[here]
    return next((index for index in rows if (apis[index], clients[index]) == kind), None)


def _line(store: Store, index: int, here: int) -> str:
    session = store.session
    delta = session.columns["time_ns"][index] - session.columns["time_ns"][here]
    when = "  this" if index == here else f"{'-' if delta < 0 else '+'}{duration(abs(delta))}"
    version = session.columns["api_version"][index]
    api = session.tables["api"].values[session.columns["api"][index]] or "not a Kafka message"
    name = api if version == NONE else f"{api} v{version}"
    return f"{session.columns['number'][index]:<7}  {when:>9}  {name:<22} {store.result(index)}"
