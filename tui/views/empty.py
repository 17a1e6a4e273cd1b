"""Why a list has no rows, and the keys that help."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.analyzer.text import plural, wrapped
from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.process.control import ProxyWatch
from kafkascope.tui.settings.palette import NORMAL, STYLES
from kafkascope.tui.views.lines import Piece

KEYS: Final = (("2", "show connections"), ("d", "decode other ports as Kafka"))
"""Keys that help where there are packets, but no exchanges."""
OTHER: Final = ("ctrl+o", "open another file")

WIDTH: Final = 90
MARGIN: Final = 2


class Empty(NamedTuple):
    """Placeholder for a list without rows."""

    text: str
    """One sentence, or several with a new line between them."""
    keys: tuple[tuple[str, str], ...] = ()


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
    hint = f" Set bootstrap.servers={clients} in a client." if clients else ""
    lines = [proxy.problem, *map(sentence, proxy.notices[-3:]), f"No requests yet.{hint}"]
    text = "\n".join(filter(None, lines))
    return Empty(text, (("8", "the proxy: rules, held frames, connections"),))


def sentence(text: str) -> str:
    """Return a remark about the capture as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def empty_lines(empty: Empty, columns: int) -> list[list[Piece]]:
    """Return the lines of a placeholder: sentences, and keys below them."""
    room = max(10, min(columns - 2 * MARGIN, WIDTH))
    out: list[list[Piece]] = []
    for text in empty.text.splitlines():
        indent = " " * (MARGIN + len(text) - len(text.lstrip()))
        lines = wrapped(text, room, indent=indent, breaks=True)
        out += [[(line, NORMAL)] for line in lines]
    width = max((len(key) for key, _ in empty.keys), default=0)
    keys: list[list[Piece]] = [
        [(" " * MARGIN, NORMAL), (f"{key:<{width}}", STYLES["label"]), (f"  {does}", NORMAL)]
        for key, does in empty.keys
    ]
    return [*out, [], *keys] if keys else out
