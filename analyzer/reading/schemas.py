"""The schemas that the user's options give, and those of the capture itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkascope.analyzer.payloads.decoding import Payloads
from kafkascope.analyzer.payloads.known import KnownSchemas
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkascope.analyzer.exchanges.offline import Capture
    from kafkascope.analyzer.payloads.model import Schema
    from kafkascope.analyzer.reading.options import ReadOptions


def payloads_of(options: ReadOptions, capture: Capture | None = None) -> Payloads | None:
    """Return what decodes keys and values; None when the user wants none of it.

    Of files the capture's own schemas are read in a pass of their own, at the first id that nobody
    knows. Of input that cannot be read twice they are taken from `capture` while it is read.
    """
    wanted = options.schemas
    if wanted.off:
        return None
    from kafkascope.analyzer.payloads.folder import assigned_of, read_folder

    given: list[Schema] = []
    for path in wanted.folders:
        found, problems = read_folder(path)
        given += found
        _told(problems, options)
    known = KnownSchemas(
        given,
        assigned={key: value for text in wanted.assigned for key, value in [assigned_of(text)]},
    )
    return Payloads(known)


def _told(problems: Iterable[str], options: ReadOptions) -> None:
    if not options.quiet:
        for each in problems:
            say(safe(each))
