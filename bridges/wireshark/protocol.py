"""The extcap protocol: what Wireshark asks a program for, and the sentences that answer it.

    --extcap-interfaces                                 which interfaces there are
    --extcap-interface NAME --extcap-dlts               its link type
    --extcap-interface NAME --extcap-config             its options
    --extcap-interface NAME --capture --fifo PATH ...   packets, as pcapng, into a pipe

Sans-I/O. https://www.wireshark.org/docs/wsdg_html_chunked/ChCaptureExtcap.html
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

HELP: Final = "https://github.com/kafkascope/kafkascope/blob/main/docs/wireshark.md"
PROXY: Final = "kafkascope-proxy"
LIVE: Final = "kafkascope-live"
INTERFACES: Final = {PROXY: "Kafka proxy", LIVE: "Kafka live capture"}
PORTS: Final = "9092"
MOST_PORT: Final = 65_535
_PORT: Final = re.compile("[0-9]{1,5}")


class WrongCall(Exception):
    """An invalid request of Wireshark; one sentence for people."""


class Arg(NamedTuple):
    """An option of an interface, as Wireshark's dialog shows it."""

    call: str
    """Option of our command line."""
    display: str
    kind: str = "string"
    default: str = ""
    tooltip: str = ""
    required: bool = False
    group: str = ""
    more: str = ""
    """Further parts of the sentence."""

    @property
    def is_flag(self) -> bool:
        """Whether the option takes no value."""
        return self.kind == "boolflag"


ARGS: Final[dict[str, tuple[Arg, ...]]] = {
    PROXY: (
        Arg(
            "--upstream",
            "Broker",
            tooltip="HOST:PORT of a broker; others are learned from its responses",
            required=True,
            more="{placeholder=broker:9092}",
        ),
        Arg(
            "--listen",
            "Clients connect to",
            default="127.0.0.1:19092",
            tooltip="HOST:PORT, the bootstrap.servers of the clients to watch",
        ),
        Arg("--upstream-tls", "Brokers speak TLS", "boolflag", "false", group="TLS"),
        Arg(
            "--upstream-ca",
            "Certificates of the brokers' CA",
            "fileselect",
            tooltip="PEM (default: CAs of the system)",
            group="TLS",
            more="{mustexist=true}",
        ),
        Arg(
            "--tls",
            "Clients speak TLS",
            "boolflag",
            "false",
            "They must trust the CA in ~/.kafkascope",
            group="TLS",
        ),
        Arg(
            "--fault",
            "Rule",
            tooltip="Fault to inject: api == Fetch -> delay 200ms p=0.1",
            group="Faults",
        ),
    ),
    LIVE: (
        Arg(
            "--interface",
            "Interface",
            "selector",
            tooltip="Interface to capture on",
            required=True,
        ),
        Arg(
            "--ports",
            "Ports of brokers",
            default=PORTS,
            tooltip="9092, or several: 9092,9094,19092-19099",
        ),
        Arg(
            "--keylog",
            "Key log",
            "fileselect",
            tooltip="Key log of clients or brokers; its secrets go into the capture",
            group="TLS",
            more="{mustexist=false}",
        ),
    ),
}


@dataclass(slots=True)
class ExtcapCall:
    """A call of Wireshark's."""

    interfaces: bool = False
    interface: str = ""
    dlts: bool = False
    config: bool = False
    capture: bool = False
    fifo: str = ""
    capture_filter: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    """Options of the interface, by call; flags that are set have an empty value."""


FLAGS: Final = {
    "--extcap-interfaces": "interfaces",
    "--extcap-dlts": "dlts",
    "--extcap-config": "config",
    "--capture": "capture",
}
VALUES: Final = {
    "--extcap-interface": "interface",
    "--fifo": "fifo",
    "--extcap-capture-filter": "capture_filter",
}
"""Attributes of a call by the words that set them."""
PASSED_OVER: Final = ("--extcap-reload-option", "--extcap-control-in", "--extcap-control-out")


def read_call(words: Sequence[str]) -> ExtcapCall:
    """Read a command line; `WrongCall`. Calls of protocols to come are passed over."""
    call = ExtcapCall()
    rest = list(words)
    while rest:
        name, equals, value = rest.pop(0).partition("=")

        def given(name: str = name, equals: str = equals, value: str = value) -> str:
            if equals:
                return value
            if not rest:
                raise WrongCall(f"{name} needs a value")
            return rest.pop(0)

        if name in FLAGS:
            setattr(call, FLAGS[name], True)
        elif name in VALUES:
            setattr(call, VALUES[name], given())
        elif name in PASSED_OVER:
            given()
        elif not name.startswith("--extcap-"):  # --extcap-version=4.4, and those to come
            arg = _arg_of(call.interface, name)
            call.options[name] = "" if arg.is_flag and not equals else given()
    return call


def _arg_of(interface: str, name: str) -> Arg:
    for arg in ARGS.get(interface, ()):
        if arg.call == name:
            return arg
    raise WrongCall(f"{interface or 'no interface'} has no option {name}")


def interface_sentences(version: str) -> list[str]:
    """Return the program and its interfaces."""
    head = f"extcap {{version={version}}}{{help={HELP}}}{{display=kafkascope}}"
    return [
        head,
        *(f"interface {{value={name}}}{{display={shown}}}" for name, shown in INTERFACES.items()),
    ]


def dlt_sentences(interface: str) -> list[str]:
    """Return the link type of an interface. Its pcapng says by itself what each packet has."""
    _known(interface)
    return ["dlt {number=1}{name=EN10MB}{display=Ethernet}"]


def config_sentences(interface: str, devices: Iterable[str]) -> list[str]:
    """Return the options of an interface. `devices`: the system's interfaces."""
    _known(interface)
    lines = []
    for number, arg in enumerate(ARGS[interface]):
        parts = {
            "number": str(number),
            "call": arg.call,
            "display": arg.display,
            "type": arg.kind,
            "default": arg.default,
            "tooltip": arg.tooltip,
            "required": "true" if arg.required else "",
            "group": arg.group,
        }
        members = "".join(f"{{{key}={value}}}" for key, value in parts.items() if value)
        lines.append(f"arg {members}{arg.more}")
        if arg.kind == "selector":
            lines += [
                f"value {{arg={number}}}{{value={name}}}{{display={name}}}"
                + "{default=true}" * (place == 0)
                for place, name in enumerate(devices)
                if not set(name) & set("{}")
            ]
    return lines


def _known(interface: str) -> None:
    if interface not in INTERFACES:
        raise WrongCall(f"unknown interface {interface}")


def words_of(call: ExtcapCall) -> list[str]:
    """Return the `kafkascope` command, without its target, for the requested capture."""
    _known(call.interface)
    options = {arg.call: call.options.get(arg.call, "").strip() for arg in ARGS[call.interface]}
    for arg in ARGS[call.interface]:
        if arg.required and not options[arg.call]:
            preference = f"extcap.{call.interface.replace('-', '_')}.{arg.call.strip('-')}"
            raise WrongCall(f"{arg.display} is missing; in a terminal: -o {preference}:VALUE")
    if call.interface == LIVE:
        chosen = bpf(options["--ports"] or PORTS, call.capture_filter or "")
        words = ["capture", f"-i{options['--interface']}", f"-f{chosen}", "--quiet"]
        if options["--keylog"]:
            words += [f"--keylog={options['--keylog']}", "--secrets"]
        return words
    words = ["proxy", "--quiet", "--until-eof"]
    for arg in ARGS[PROXY]:
        value = call.options.get(arg.call)
        if arg.is_flag:
            words += [arg.call] * (value is not None and value.lower() != "false")
        elif options[arg.call]:
            words.append(f"{arg.call}={options[arg.call]}")
    return words


def bpf(ports: str, more: str) -> str:
    """Return the capture filter for such ports; `WrongCall`."""
    terms = []
    for part in re.split(r"[,\s]+", ports.strip()):
        low, dash, high = part.partition("-")
        high = high if dash else low
        if not (_PORT.fullmatch(low) and _PORT.fullmatch(high)):
            raise WrongCall(f'"{part}" is not a port; write 9092, or 9092,19092-19099')
        if not 0 < int(low) <= int(high) <= MOST_PORT:
            raise WrongCall(f'"{part}": ports are 1 to {MOST_PORT}')
        terms.append(f"port {low}" if not dash else f"portrange {low}-{high}")
    chosen = f"tcp and ({' or '.join(terms)})"
    return f"({more}) and {chosen}" if more.strip() else chosen


def script(command: Sequence[str]) -> str:
    """Return the program that Wireshark runs: it starts a command with its arguments."""
    return f'#!/bin/sh\n{MARK}\nexec {shlex.join(command)} "$@"\n'


MARK: Final = (
    "# Written by `kafkascope integrations wireshark install`;"
    " `kafkascope integrations wireshark uninstall` removes it."
)
