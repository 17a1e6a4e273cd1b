"""`kafkascope integrations wireshark`: the proxy and live captures as interfaces of Wireshark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafkascope.analyzer.commands.help import CommandGroup, setting
from kafkascope.analyzer.terminal import document, out, say
from kafkascope.release import release

if TYPE_CHECKING:
    from kafkascope.bridges.wireshark.protocol import ExtcapCall

FAILED: Final = 1


@click.group(cls=CommandGroup)
def wireshark() -> None:
    """Install Wireshark capture interfaces (extcap).

    The interfaces are a Kafka proxy and a live capture.

    \b
      kafkascope integrations wireshark install
      wireshark                   # choose "Kafka proxy", set the broker, start
      tshark -i kafkascope-proxy -o extcap.kafkascope_proxy.upstream:broker:9092
    """


_FOLDER: Final = setting(
    "--folder",
    "DIR",
    "Folder of extcap programs (default: the personal one)",
    type=click.Path(path_type=Path, file_okay=False),
)


@wireshark.command()
@_FOLDER
def install(folder: Path | None) -> int:
    """Install the interfaces into Wireshark's extcap folder."""
    from kafkascope.bridges.wireshark import folders
    from kafkascope.bridges.wireshark.protocol import INTERFACES, script

    found = folders.ask_tshark() if folder is None else folders.Folders(None, None)
    place = folder or found.personal or folders.default_folder()
    command = [sys.executable, "-P", "-m", "kafkascope", "integrations", "wireshark", "extcap"]
    try:
        path = folders.put(place.absolute(), script(command))
    except FileExistsError as error:
        say(f"{error.filename} {error.strerror}")
        return FAILED
    out(f"{path}")
    say(f"interfaces of Wireshark: {', '.join(INTERFACES.values())}")
    if folder is None and found.shared and not found.personal:
        say(
            "this Wireshark is older than 4.2 and has no personal folder: start it with"
            f" WIRESHARK_EXTCAP_DIR={place}, or install for all users with --folder {found.shared}"
        )
    return 0


@wireshark.command()
@_FOLDER
def uninstall(folder: Path | None) -> int:
    """Remove the interfaces."""
    from kafkascope.bridges.wireshark import folders

    places = [folder] if folder else [folders.ask_tshark().personal, folders.default_folder()]
    taken = [
        path for place in dict.fromkeys(filter(None, places)) if (path := folders.take_away(place))
    ]
    for path in taken:
        out(f"{path}")
    if not taken:
        say("nothing to remove: kafkascope is not installed there")
    return 0


@wireshark.command(
    hidden=True, context_settings={"ignore_unknown_options": True, "help_option_names": []}
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def extcap(words: tuple[str, ...]) -> int:
    """Answer Wireshark; the program that `install` wrote calls it."""
    from kafkascope.bridges.wireshark.protocol import WrongCall, read_call

    try:
        return _answer(read_call(words))
    except WrongCall as error:
        say(f"{error}")
        return FAILED


def _answer(call: ExtcapCall) -> int:
    from kafkascope.bridges.wireshark import protocol

    if call.interfaces:
        lines = protocol.interface_sentences(release())
    elif call.dlts:
        lines = protocol.dlt_sentences(call.interface)
    elif call.config:
        lines = protocol.config_sentences(call.interface, _devices())
    elif call.capture:
        if not call.fifo:
            raise protocol.WrongCall("--capture needs --fifo")
        from kafkascope.bridges.wireshark.running import capture, refuse

        try:
            words = protocol.words_of(call)
        except protocol.WrongCall as error:
            say(f"{error}")
            refuse(call.fifo)
            return FAILED
        return capture(words, call.fifo)
    elif call.capture_filter and call.interface == protocol.PROXY:
        lines = ["the proxy takes no capture filter"]
    else:
        lines = []
    if lines:
        document("\n".join(lines))
    return 0


def _devices() -> list[str]:
    import socket

    return ["any", *(name for _, name in socket.if_nameindex())]
