"""`kafkascope open`: the terminal UI on captures."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.commands.options import Wish, input_options
from tui.showing import check_terminal

if TYPE_CHECKING:
    from tui.feed import Feed
    from tui.showing import Shown

TTY = "/dev/tty"


def _attach(context: click.Context, parameter: click.Parameter, which: str | None) -> None:
    """Instead of an input: the proxy itself."""
    if which is None or context.resilient_parsing:
        return
    from proxy.attach import NoProxy, find
    from tui.attach import open_proxy

    try:
        path = find(which or None)
    except NoProxy as error:
        raise click.ClickException(str(error)) from error
    context.exit(open_proxy(path))


@click.command("open")
@click.option(
    "--attach",
    metavar="[PID|PATH]",
    is_flag=False,
    flag_value="",
    is_eager=True,
    expose_value=False,
    callback=_attach,
    help="Instead of an input: a proxy of yours that is running.",
)
@input_options
def open_(wish: Wish) -> int:
    """Look at captures in the terminal: exchanges, their messages and bytes.

    INPUT is a pcap or pcapng file (also .gz, .zst), several of them, a folder, or - for stdin. Rows
    show while the rest is read; ctrl+c stops reading, ? lists the keys.

    \b
      kafkascope open capture.pcapng -Y 'error != 0'
      tcpdump -i any -s 0 -U -w - port 9092 | kafkascope open -
      kafkascope open --attach
    """
    from analyzer.filter import compile_filter
    from captures.errors import NotACapture

    compile_filter(wish.filter_text)
    for name in wish.inputs:
        if name != "-" and not Path(name).exists():
            raise NotACapture(f"{name}: no such file or folder")
    check_terminal()
    data = _keyboard(wish.inputs)
    from tui.feed import ProcessFeed

    legs = "both" if wish.both_legs else "client"
    while True:
        # Before Textual loads: the reader reads meanwhile.
        feed = ProcessFeed(wish.inputs, ports=wish.ports, legs=legs, stdin=data)
        try:
            shown = _show(feed, wish)
        finally:
            feed.close()
        if shown.wanted is None or (not shown.wanted and "-" in wish.inputs):
            return shown.code
        if shown.wanted:
            wish = replace(wish, inputs=(shown.wanted,), filter_text="")


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


def _show(feed: Feed, wish: Wish) -> Shown:
    from tui.config import remember
    from tui.numbers import ProcessNumbers
    from tui.showing import show

    remember(wish.inputs)
    name = wish.inputs[0] if len(wish.inputs) == 1 else f"{len(wish.inputs)} inputs"
    legs = "both" if wish.both_legs else "client"

    def counted(text: str) -> ProcessNumbers:
        return ProcessNumbers(wish.inputs, ports=wish.ports, legs=legs, filter_text=text)

    return show(
        feed,
        "stdin" if name == "-" else Path(name).name or name,
        filter_text=wish.filter_text,
        plain=wish.plain,
        times=wish.time_format,
        counted=counted if all(map(_can_be_read_twice, wish.inputs)) else None,
    )
