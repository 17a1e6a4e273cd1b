"""Runs the terminal UI on a feed: settings, theme, terminal, exit code."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kafkascope.analyzer.render.times import TIME_FORMATS
from kafkascope.tui.process.splash import splash
from kafkascope.tui.process.tuning import rare_collections

if TYPE_CHECKING:
    from kafkascope.tui.app import ScopeApp
    from kafkascope.tui.data.feed import Feed
    from kafkascope.tui.host import Counted
    from kafkascope.tui.process.control import Control
    from kafkascope.tui.settings.notes import Notes

RELATIVE = ("a", "d", "dd")
"""Time formats that the setting replaces: the default, and those relative to rows."""


class Outcome(NamedTuple):
    """How the UI ended."""

    code: int
    wanted: str | None = None
    """What to show next: a file; empty: the same again; None: nothing."""
    ports: frozenset[int] | None = None
    """Ports to decode as Kafka then."""
    filter_text: str = ""
    """The filter that was in use."""


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
    filter_text: str = "",
    plain: bool = False,
    times: str = "a",
    counted: Counted | None = None,
    control: Control | None = None,
    notes: Notes | None = None,
    tour: bool = False,
    hello: str = "",
    once: str = "",
    tab: bool = False,
) -> Outcome:
    """Show a feed until the user leaves; `tour`: with the guide of the demo; `hello`: a first
    notification; `once`: why it cannot be shown again; `tab`: in a browser, where stderr is for
    messages."""
    with nullcontext() if tab else splash(title):
        app = _app(tour)(
            feed,
            title,
            filter_text=filter_text,
            counted=counted,
            control=control,
            notes=notes,
            **_settings(plain, times),
        )
    app.hello, app.inputs.once = hello, once
    with rare_collections():
        app.run()
    inputs, code = app.inputs, app.return_code or 0
    return Outcome(code, inputs.wanted, inputs.ports, app.workspace.view.text)


def _app(tour: bool) -> type[ScopeApp]:
    from kafkascope.tui.app import ScopeApp

    if not tour:
        return ScopeApp
    from kafkascope.tui.guide.tour_app import TourApp

    return TourApp


def _settings(plain: bool, times: str) -> dict[str, Any]:
    """Return the options of the app, from the command line or from the settings."""
    from kafkascope.tui.controllers.table import all_ids
    from kafkascope.tui.settings.config import read_config

    config = read_config(all_ids)
    if times in RELATIVE:
        times = config.times if config.times in TIME_FORMATS else "u"
    narrow = "utf" not in (sys.stderr.encoding or "").lower()
    return {"plain": plain or config.plain or narrow, "times": times, "config": config}
