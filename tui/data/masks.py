"""Which rows are of a kind, as arrays of booleans over all rows: for jumping to the next one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np

from kafkascope.analyzer.filter.language import compile_query
from kafkascope.analyzer.session.session import Session
from kafkascope.tui.data.store import BAD_STATES, Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]


def column(session: Session, name: str) -> NDArray[np.int64]:
    """Return a copy of a column: an array that numpy looks at cannot grow."""
    return np.array(session.columns[name], dtype=np.int64)


def bad(store: Store) -> Bools:
    """Select exchanges with an error or without the response that was due."""
    session = store.session
    return failed(session) | np.isin(column(session, "state"), list(BAD_STATES))


def probes(session: Session) -> Bools:
    """Select ApiVersions that were too new for the broker, which says what it knows: clients begin
    so (KIP-511), and nothing is wrong."""
    found = _with_errors(session, lambda codes: codes == (35,))
    found &= column(session, "api_key") == 18
    return found


def failed(session: Session) -> Bools:
    """Select responses with an error, as far as bodies were read."""
    return _with_errors(session, bool)


def _with_errors(session: Session, wanted: Callable[[tuple[int, ...]], bool]) -> Bools:
    """Select rows by their error codes, as far as bodies were read."""
    lists = np.array([wanted(codes) for codes in session.tables["errors"].values] or [False])
    errors = column(session, "errors")
    found: Bools = np.zeros(len(session), dtype=np.bool_)
    found[: len(errors)] = lists[errors]
    return found


def same_connection(store: Store, index: int) -> Bools:
    """Select the exchanges on the connection of a row."""
    found: Bools = column(store.session, "connection") == store.session.columns["connection"][index]
    return found


def numbered(store: Store, numbers: Collection[int]) -> Bools:
    """Select exchanges by their numbers."""
    return np.isin(column(store.session, "number"), list(numbers))


def with_text(store: Store, text: str) -> Bools:
    """Select exchanges whose line has a text: result, API, client, topics, groups and so on."""
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    found, _ = compile_query(quoted).settle(store.session)
    pattern = re.compile(re.escape(text.encode("utf-8", "surrogatepass")), re.IGNORECASE)
    hits = store.texts.rows_with(pattern)
    found[hits] = True  # for rows behind the last text only columns count
    return found
