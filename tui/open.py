"""`kafkascope open`: the terminal UI on captures."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kafkascope.analyzer.commands.help import command, complete_interfaces, setting
from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.reading.options import ReadOptions, SchemaOptions
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import safe
from kafkascope.errors import UNAVAILABLE
from kafkascope.extras import require
from kafkascope.tui.showing import can_be_reread, check_terminal, payloads_maker, show

if TYPE_CHECKING:
    from kafkascope.tui.app import ScopeApp

TTY = "/dev/tty"


def _attached(
    which: str,
    options: ReadOptions,
    interface: str | None,
    capture_filter: str,
    save: str | None,
) -> int:
    """Show a running proxy in the place of an input. It reads its traffic itself: options that say
    how captures are read are refused."""
    from kafkascope.proxy.control.attach import NoProxy, find
    from kafkascope.tui.process.attach import open_proxy

    given = {
        "INPUT": options.inputs,
        "-i": interface,
        "-f": capture_filter,
        "-w": save,
        "-d": options.ports,
        "--keylog": options.keylog,
    }
    if wrong := ", ".join(name for name, value in given.items() if value):
        raise click.UsageError(f"--attach shows a running proxy: leave out {wrong}")
    try:
        path = find(which or None)
    except NoProxy as error:
        say(f"{error}")
        return UNAVAILABLE
    how: Any = {"plain": options.plain, "times": options.time_format}
    return open_proxy(path, options.schemas, options.filter_text, **how)


def _input_or_interface(function: Any) -> Any:
    """Make INPUT optional: `open` may capture itself."""
    for parameter in function.__click_params__:
        if parameter.name == "inputs":
            parameter.required = False
    return function


@command("open")
@setting(
    "--attach",
    "[PID|PATH]",
    "Show a running proxy (default: the only one)",
    is_flag=False,
    flag_value="",
    section="Live",
)
@setting(
    "-i interface",
    "IFACE",
    "Capture on this interface; any for all",
    section="Live",
    shell_complete=complete_interfaces,
)
@setting(
    "-f capture_filter", "BPF", "Capture filter of -i, as in tcpdump", default="", section="Live"
)
@setting("-w save", "FILE", "Also save the traffic of -i or - to FILE", section="Live")
@setting("--web", "", "Open in a browser on this machine", section="Browser")
@setting("--web-port", "[HOST:]PORT", "Port of --web (default: a free one)", section="Browser")
@setting("--tab", "", "Run as a browser tab", hidden=True)
@setting("--tour", "", "Start the guided tour", hidden=True)
@setting("--hello", "TEXT", "First notification", default="", hidden=True)
@_input_or_interface
@reading_options("time_format", without=["count", "begin", "end"])
def open_(
    options: ReadOptions,
    attach: str | None,
    interface: str | None,
    capture_filter: str,
    save: str | None,
    web: bool,
    web_port: str | None,
    tab: bool,
    tour: bool,
    hello: str,
) -> int:
    """Browse a capture in the terminal UI.

    INPUT is a pcap or pcapng file (also .gz, .zst, .xz, .bz2), several, a folder, or - for stdin.
    Rows appear while the rest is read; growing files are followed. Press ? for the keys, ctrl+c to
    stop reading.

    \b
      kafkascope open capture.pcapng -Y 'error != 0'
      kafkascope open -i eth0 -f 'port 9092' -w kept.pcapng
      tcpdump -i any -s 0 -U -w - port 9092 | kafkascope open -
      kafkascope open --attach
      kafkascope open capture.pcapng --web
    """
    if web:
        require("kafkascope open --web")
    names = shlex.join(map(safe, options.inputs))
    require("kafkascope open", instead=f"kafkascope ls {names}" if names else "")
    if web_port is not None and not web:
        raise click.UsageError("--web-port needs --web")
    if attach is not None:
        if web:
            raise click.UsageError("--attach shows a proxy in this terminal: leave out --web")
        return _attached(attach, options, interface, capture_filter, save)
    if options.filter_text:
        from kafkascope.analyzer.filter.language import bind, compile_filter

        (compile_filter if options.schemas.off else bind)(options.filter_text)
    files = interface is None
    for wrong, why in (
        (
            files and not options.inputs,
            "INPUT is missing: name a capture, a folder, or - for stdin, or write -i IFACE",
        ),
        (not files and options.inputs, "-i captures, INPUT is read: leave one of them out"),
        (files and capture_filter, "-f needs -i; use -Y to filter INPUT"),
        (
            files and save and "-" not in options.inputs,
            "-w needs -i or - (stdin): other inputs are files already",
        ),
    ):
        if wrong:
            raise click.UsageError(why)
    # A program that is captured may not have begun its key log yet.
    endless = not files or "-" in options.inputs
    for name in (*options.inputs, *(() if endless else options.keylog)):
        if name != "-" and not Path(name).exists():
            from kafkascope.captures.errors import NotACapture

            raise NotACapture(f"{name}: no such file or folder")
    live = LiveOptions(interface or "", capture_filter, save)
    if web:
        return _in_browser(options, live, web_port)
    data = None
    if not tab:
        check_terminal("kafkascope capture" if interface else "kafkascope ls")
        data = _keyboard(options.inputs)
    while True:
        shown, hello = _show(options, live, data, tour=tour, hello=hello, tab=tab), ""
        if save:
            say(f"the capture is in {save}")
        inputs = shown.inputs
        if inputs.wanted is None:
            return shown.return_code or 0
        if inputs.wanted:
            options, live = replace(options, inputs=(inputs.wanted,), filter_text=""), LiveOptions()
        else:
            options = replace(options, filter_text=shown.workspace.view.text)
        options = replace(options, ports=options.ports | inputs.ports)


def _in_browser(options: ReadOptions, live: LiveOptions, port: str | None) -> int:
    """Serve the UI; every tab reads the inputs for itself."""
    from kafkascope.tui.web.door import NotHere, address_of

    if live.interface or not can_be_reread(options):
        raise click.UsageError(
            "--web needs files, because each tab reads them: record with `kafkascope capture -w"
            " FILE`, and open FILE while it grows"
        )
    try:
        address = address_of(port or "0")
    except NotHere as error:
        raise click.BadParameter(str(error), param_hint="--web-port") from None
    from kafkascope.tui.web.server import serve

    words = tab_words(click.get_current_context().params)
    return serve(
        [sys.executable, "-P", "-m", "kafkascope.tui.cli", *words], _title(options, live), address
    )


def tab_words(options: dict[str, Any]) -> list[str]:
    """Return the command line of a tab, from the options of `open --web`."""
    words = ["open", "--tab", "-t", options["time_format"], "--legs", options["legs"]]
    words += ["--plain"] if options["plain"] else []
    words += ["-Y", options["filter_text"]] if options["filter_text"] else []
    for name, values in (("-d", options["decode_as"]), ("--keylog", options["keylog"])):
        for value in values:
            words += [name, value]
    words += ["--time-zone", options["zone"]] if options["zone"] else []
    schemas = ("schema_folders", "assigned", "registry", "registry_ca", "no_schemas")
    words += SchemaOptions(*(options[each] for each in schemas)).words()
    return [*words, "--", *options["inputs"]]


class LiveOptions(NamedTuple):
    """Options of capturing, empty where files are read."""

    interface: str = ""
    capture_filter: str = ""
    save: str | None = None


def _keyboard(inputs: Sequence[str]) -> int | None:
    """Give descriptor 0 to the terminal, as Textual reads keys there; return another one for what
    arrives on stdin, None if that is the terminal."""
    if sys.stdin.isatty():
        if "-" in inputs:
            raise click.UsageError("- reads stdin, which is a terminal: pipe a capture into it")
        return None
    data = os.dup(0)
    try:
        terminal = os.open(TTY, os.O_RDWR)
    except OSError:
        raise click.UsageError(
            "the terminal UI needs a terminal for the keyboard; use `kafkascope ls` instead"
        ) from None
    os.dup2(terminal, 0)
    os.close(terminal)
    return data


def _title(options: ReadOptions, live: LiveOptions) -> str:
    if live.interface:
        return f"live on {live.interface}"
    if len(options.inputs) != 1:
        return f"{len(options.inputs)} inputs"
    name = options.inputs[0]
    return "stdin" if name == "-" else Path(name).name or name


def _show(
    options: ReadOptions, live: LiveOptions, data: int | None, *, tour: bool, hello: str, tab: bool
) -> ScopeApp:
    from kafkascope.tui.data.feed import Feed

    how: Any = {
        "ports": options.ports,
        "legs": "both" if options.both_legs else "client",
        "keylog": options.keylog,
        "zone": options.zone,
    }
    # Before Textual loads: the reader reads meanwhile.
    feed = Feed(
        options.inputs,
        **how,
        stdin=data,
        interface=live.interface,
        capture_filter=live.capture_filter,
        output=live.save,
        payloads=payloads_maker(options),
        schema_words=options.schemas.words(),
    )
    try:
        from kafkascope.analyzer.transform.marks import notes_path
        from kafkascope.tui.data.numbers import ProcessNumbers
        from kafkascope.tui.settings.config import remember
        from kafkascope.tui.settings.notes import Notes

        remember(options.inputs)

        def counted(text: str) -> ProcessNumbers:
            more: Any = {"schemas": options.schemas, "grows": feed.grows}
            return ProcessNumbers(options.inputs, **how, **more, filter_text=text)

        once, again = "", bool(options.inputs) and can_be_reread(options)
        if live.interface:
            once = f"another capture would replace {live.save}" if live.save else ""
        elif not again:
            once = "what comes through a pipe cannot be read again"
        single = options.inputs[0] if len(options.inputs) == 1 and again else ""
        return show(
            feed,
            _title(options, live),
            filter_text=options.filter_text,
            plain=options.plain,
            times=options.time_format,
            counted=counted if again else None,
            notes=Notes(notes_path(list(options.inputs)), single),
            tour=tour,
            hello=hello,
            once=once,
            tab=tab,
        )
    finally:
        feed.close()
