"""Which rows are of a kind, as arrays of booleans over all rows: for jumping to the next one."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from kafkascope.analyzer.filter.known import Known
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
    """Select exchanges with an unexpected error or without the response that was due."""
    return failed(store) | np.isin(column(store.session, "state"), list(BAD_STATES))


def failed(store: Store) -> Bools:
    """Select responses with an unexpected error."""
    known = Known(expected=store.decided)
    found, _ = compile_query("failed and not expected", known).settle(store.session)
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
