"""Runs the terminal UI on a feed: settings, theme, terminal, exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.render.times import TIME_FORMATS
from kafkascope.analyzer.text import safe

if TYPE_CHECKING:
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.tui.app import ScopeApp
    from kafkascope.tui.data.feed import Feed

# New objects after which garbage is collected; 700, the default, is several times for each key.
GC_THRESHOLD: Final = 50_000
# Collections of younger objects before one of all, which takes as long as many keys.
GC_OLD_THRESHOLD: Final = 50


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely, and never what was made before: modules, classes, styles."""
    before = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD, 20, GC_OLD_THRESHOLD)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


BEGIN: Final = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"
"""Switches to the alternate screen, as Textual does, clears it and hides the cursor."""
END: Final = "\x1b[?25h\x1b[?1049l"


@contextmanager
def splash(title: str) -> Iterator[None]:
    """Show the title until Textual draws over it, or the body raises."""
    out = sys.stderr
    # The name of a file may hold escape sequences.
    out.write(f"{BEGIN} kafkascope  {safe(title)}\r\n reading")
    out.flush()
    try:
        yield
    except BaseException:
        out.write(END)
        out.flush()
        raise


RELATIVE = ("a", "d", "dd")
"""Time formats that the setting replaces: the default, and those relative to rows."""


def can_be_reread(options: ReadOptions) -> bool:
    """Return whether all inputs can be read twice: they are files or folders, no pipes."""
    names = options.inputs
    return "-" not in names and all(Path(name).is_file() or Path(name).is_dir() for name in names)


def payloads_maker(options: ReadOptions) -> Callable[[], Payloads | None]:
    """Return what makes the decoder of keys and values when one is first wanted; what the user says
    of schemas is read now, while there is a terminal for what is wrong with it."""

    @cache
    def made(quiet: bool) -> Payloads | None:
        from kafkascope.analyzer.reading.schemas import payloads_of

        # What comes through a pipe is the reader's, and gone.
        inputs = options.inputs if options.inputs and can_be_reread(options) else ("-",)
        return payloads_of(replace(options, inputs=inputs, quiet=quiet or options.quiet))

    if options.schemas.words():
        found = made(False)
        return lambda: found
    return lambda: made(True)


def check_terminal(instead: str = "kafkascope ls") -> None:
    """Raise a usage error if the UI cannot be drawn here, with the command to use instead."""
    if not sys.stderr.isatty():
        raise click.UsageError(f"the terminal UI needs a terminal; use `{instead}` instead")
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise click.UsageError(
            f"the terminal UI needs another terminal than TERM=dumb; use `{instead}` instead"
        )


def show(
    feed: Feed,
    title: str,
    *,
    plain: bool = False,
    times: str = "a",
    tour: bool = False,
    hello: str = "",
    once: str = "",
    tab: bool = False,
    **options: Any,
) -> ScopeApp:
    """Show a feed until the user leaves, and return what showed it; `tour`: with the guide of the
    demo; `hello`: a first notification; `once`: why it cannot be shown again; `tab`: in a browser,
    where stderr is for messages; `options`: those of the app."""
    with nullcontext() if tab else splash(title):
        from kafkascope.tui.app import ScopeApp
        from kafkascope.tui.controllers.table import all_ids
        from kafkascope.tui.guide.tour_app import TourApp
        from kafkascope.tui.settings.config import read_config

        config = read_config(all_ids)
        if times in RELATIVE:
            times = config.times if config.times in TIME_FORMATS else "u"
        narrow = "utf" not in (sys.stderr.encoding or "").lower()
        options |= {"plain": plain or config.plain or narrow, "times": times, "config": config}
        app = (TourApp if tour else ScopeApp)(feed, title, **options)
    app.hello, app.inputs.once = hello, once
    with rare_collections():
        app.run()
    return app
