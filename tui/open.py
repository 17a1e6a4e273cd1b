"""`kafkascope open`: the terminal UI on captures."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from analyzer.commands.options import Wish, input_options
from analyzer.render_times import TIME_FORMATS

TTY = "/dev/tty"


@click.command("open")
@input_options
def open_(wish: Wish) -> int:
    """Look at captures in the terminal: exchanges, their messages and bytes.

    INPUT is a pcap or pcapng file (also .gz, .zst), several of them, a folder, or - for stdin. Rows
    show while the rest is read; ctrl+c stops reading, ? lists the keys.

    \b
      kafkascope open capture.pcapng -Y 'error != 0'
      tcpdump -i any -s 0 -U -w - port 9092 | kafkascope open -
    """
    from analyzer.filter import compile_filter
    from captures.errors import NotACapture

    compile_filter(wish.filter_text)
    for name in wish.inputs:
        if name != "-" and not Path(name).exists():
            raise NotACapture(f"{name}: no such file or folder")
    if not sys.stderr.isatty():
        raise click.UsageError("the terminal UI draws on stderr, which is no terminal; see ls")
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise click.UsageError("this terminal cannot draw; see kafkascope ls")
    data = _keyboard(wish.inputs)
    from tui.feed import ProcessFeed

    legs = "both" if wish.both_legs else "client"
    # Before Textual loads: the reader reads meanwhile.
    feed = ProcessFeed(wish.inputs, ports=wish.ports, legs=legs, stdin=data)
    try:
        return _show(feed, wish)
    finally:
        feed.close()


def _keyboard(inputs: Sequence[str]) -> int | None:
    """Textual reads keys from descriptor 0: where data arrive there, they move aside."""
    if sys.stdin.isatty():
        if "-" in inputs:
            raise click.UsageError("- reads a capture from stdin, which is a terminal")
        return None
    data = os.dup(0)
    try:
        terminal = os.open(TTY, os.O_RDWR)
    except OSError:
        raise click.UsageError(
            "there is no terminal to read keys from; see kafkascope ls"
        ) from None
    os.dup2(terminal, 0)
    os.close(terminal)
    return data


def _can_be_read_twice(name: str) -> bool:
    """Not a pipe."""
    path = Path(name)
    return name != "-" and (path.is_file() or path.is_dir())


def _show(feed: object, wish: Wish) -> int:
    try:
        from tui.app import ScopeApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        click.echo(
            "kafkascope: the terminal UI needs an extra: pip install kafkascope[tui]", err=True
        )
        return 5
    from typing import cast

    from tui.config import read_config, remember
    from tui.feed import Feed
    from tui.keys import all_ids
    from tui.numbers import ProcessNumbers

    config = read_config(all_ids())
    remember(wish.inputs)
    name = wish.inputs[0] if len(wish.inputs) == 1 else f"{len(wish.inputs)} inputs"
    title = "stdin" if name == "-" else Path(name).name or name
    plain = wish.plain or config.plain or "utf" not in (sys.stderr.encoding or "").lower()
    times = config.times if config.times in TIME_FORMATS else "u"
    if wish.time_format not in ("a", "d", "dd"):
        times = wish.time_format
    legs = "both" if wish.both_legs else "client"

    def counted(text: str) -> ProcessNumbers:
        return ProcessNumbers(wish.inputs, ports=wish.ports, legs=legs, filter_text=text)

    app = ScopeApp(
        cast(Feed, feed),
        title,
        filter_text=wish.filter_text,
        plain=plain,
        times=times,
        counted=counted if all(map(_can_be_read_twice, wish.inputs)) else None,
        config=config,
    )
    app.run()
    return app.return_code or 0
