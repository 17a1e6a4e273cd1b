"""Opens paths as one source: files in the order of their first packets, but captures of the same
traffic side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkascope.captures.errors import NotACapture
from kafkascope.captures.formats.text import Text, is_log
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.opening import (
    STDIN,
    format_of,
    head_of,
    is_capture,
    is_regular,
    unreadable,
)
from kafkascope.captures.inputs.order import Order
from kafkascope.captures.inputs.spool import Spool
from kafkascope.captures.merge.groups import FEW_BYTES, Sketch, groups, size_of_samples, sketch_of

if TYPE_CHECKING:
    from kafkascope.captures.merge.merging import Open


def open_inputs(paths: Iterable[str | os.PathLike[str]], *, spool: Spool | None = None) -> Source:
    """Open the captures at `paths`: files, folders of captures, pipes, "-".

    Files come in the order of their first packets, those that hold the same packets as one (see
    `captures.merge`); with a pipe among them, in the order given. Raises NotACapture at once for
    what is no capture (for "-" and pipes when they are read). With `spool`, what cannot be read a
    second time is kept there for `Source.read`.
    """
    names: list[str] = []
    for each in paths:
        path = os.fspath(each)
        names += _folder(path) if path != STDIN and os.path.isdir(path) else [path]  # noqa: PTH112
    if not names:
        raise NotACapture("no input")
    if names.count(STDIN) > 1:
        raise NotACapture("standard input can be read only once")
    regular = [name for name in names if is_regular(name)]
    heads = {name: head_of(name)[0] for name in regular}
    # The request log of a broker is empty until its level is changed, and so is one that was just
    # rotated.
    empty = [name for name in regular if not heads[name]]
    if len(empty) < len(names):
        names = [name for name in names if heads.get(name, b"?")]
        regular = [name for name in regular if heads[name]]
    texts = [name for name in regular if isinstance(format_of(heads[name], 0, name), Text)]
    size = sum(os.path.getsize(name) for name in regular)  # noqa: PTH202
    order, secrets = None, []
    known_texts = frozenset(texts)
    names = [name for name in names if name not in known_texts]
    if len(names) > 1 and len(regular) == len(names) + len(texts):
        count = size_of_samples(len(names))
        known: dict[str, Sketch] = {}
        for name in names:
            if name not in known:
                known[name] = sketch_of(name, count, bulk=size > FEW_BYTES)
        names.sort(key=lambda name: known[name].first_ns)
        order = order_of(names, [known[name] for name in names])
        secrets = [each for name in names for each in known[name].secrets] if order else []
    source = Source([*names, *texts], spool, order=order)
    source.texts |= dict.fromkeys(range(len(names), len(source.names)), True)
    source.texts |= {index: False for index, name in enumerate(names) if name in regular}
    source.secrets += secrets
    source.empty += empty
    source.size = size
    return source


def order_of(names: list[str], sketches: list[Sketch], open_: Open | None = None) -> Order | None:
    """Return the order of files that hold the same packets; None: there are none, and one file is
    read after the other."""
    found = groups(sketches, names)
    if not found:
        return None
    from kafkascope.captures.merge.merging import OutOfOrder, merge

    order = Order([0] * len(names))
    of_file = {file: group for group in found for file in group.shifts}
    done: set[int] = set()
    for file in range(len(names)):
        if file in done:
            continue
        group = of_file.get(file)
        if group is not None:
            length = len(order.files)
            try:
                merge(group, names, order, open_)
            except OutOfOrder:
                order.cut(length)
                of_file = {key: value for key, value in of_file.items() if value is not group}
            else:
                for each, shift in group.shifts.items():
                    order.shifts[each] = shift
                done.update(group.shifts)
                continue
        order.add(file, 0)
    return order


def _folder(path: str) -> list[str]:
    """Return the captures in a folder; where it has none, those of the folders in it: request logs
    of several brokers have one name."""
    try:
        found = _captures(path)
        if not found:
            below = sorted(entry.path for entry in os.scandir(path) if entry.is_dir())
            found = [name for each in below for name in _captures(each)]
    except OSError as error:
        raise unreadable(path, error) from None
    if not found:
        raise NotACapture(f"{path} is a folder without captures")
    return found


def _captures(path: str) -> list[str]:
    names = sorted(entry.path for entry in os.scandir(path) if entry.is_file())
    return [name for name in names if is_capture(head := head_of(name)[0]) or is_log(head)]
