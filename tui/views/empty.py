"""Why a list has no rows, and the keys that help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.analyzer.text import plural, wrapped
from kafkascope.tui.settings.palette import NORMAL, STYLES
from kafkascope.tui.views.lines import Piece

if TYPE_CHECKING:
    from kafkascope.tui.data.workspace import Workspace
    from kafkascope.tui.process.watch import ProxyWatch

KEYS: Final = (("2", "show connections"), ("d", "decode other ports as Kafka"))
"""Keys that help where there are packets, but no exchanges."""
OTHER: Final = ("ctrl+o", "open another file")

WIDTH: Final = 90
"""Columns of the sentences."""
MARGIN: Final = 2


class Empty(NamedTuple):
    """What stands in the place of rows."""

    text: str
    """One sentence, or several with a new line between them."""
    keys: tuple[tuple[str, str], ...] = ()
    """Key, and what it does."""


def empty(workspace: Workspace, proxy: ProxyWatch | None = None) -> Empty:
    """Return why the list shows no exchange. `proxy`: where the exchanges come from, if not from a
    capture."""
    store, view, notes = workspace.store, workspace.view, workspace.notes
    progress, total = store.progress, len(store)
    if not total:
        if not progress.done and not workspace.endless:
            return Empty("reading ...")
        if proxy is not None and not progress.done:
            return _of_proxy(proxy)
        if progress.done:
            return Empty(sentence(progress.empty or "no exchanges"), (*KEYS, OTHER))
        return Empty(sentence(progress.empty or "no packets yet"), KEYS)
    if not view.text:
        if notes.ignored:
            return Empty(f"All {plural(total, 'exchange')} are ignored.", (("I", "show them"),))
        return Empty("")
    if view.behind:
        return Empty(f"filtering {plural(total, 'exchange')}: {int(100 * view.scanned)} %")
    so_far = "" if progress.done else " so far"
    return Empty(
        f"0 of {plural(total, 'exchange')}{so_far} match the filter\n  {view.text}",
        (("Esc", "go back, or remove the filter"), ("/", "change the filter")),
    )


def _of_proxy(proxy: ProxyWatch) -> Empty:
    clients = proxy.status.get("bootstrap", "")
    lines = [proxy.problem] if proxy.problem else []
    lines += [sentence(text) for text in proxy.notices[-3:]]
    lines.append(
        "No requests yet." + f" Set bootstrap.servers={clients} in a client." * bool(clients)
    )
    return Empty("\n".join(lines), (("8", "the proxy: rules, held frames, connections"),))


def sentence(text: str) -> str:
    """Return a remark about the capture as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def empty_lines(empty: Empty, width: int) -> list[list[Piece]]:
    """Return what stands in the place of rows: sentences, and keys below them."""
    room = max(10, min(width - 2 * MARGIN, WIDTH))
    out: list[list[Piece]] = []
    for text in empty.text.splitlines():
        indent = " " * (MARGIN + len(text) - len(text.lstrip()))
        lines = wrapped(text, room, indent=indent, breaks=True)
        out += [[(line, NORMAL)] for line in lines]
    named = max((len(key) for key, _ in empty.keys), default=0)
    if empty.keys:
        out.append([])
    for key, does in empty.keys:
        out.append(
            [(" " * MARGIN, NORMAL), (f"{key:<{named}}", STYLES["label"]), (f"  {does}", NORMAL)]
        )
    return out
