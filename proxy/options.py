"""The options of `kafkascope proxy`, and their checks."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.file_path import FILE
from kafkascope.analyzer.commands.help import option
from kafkascope.analyzer.commands.options import SCHEMA_OPTIONS, SCHEMAS
from kafkascope.analyzer.filter.values import duration, size
from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.analyzer.terminal import document
from kafkascope.extras import require
from kafkascope.proxy.engine.directory import Address, parse_address
from kafkascope.proxy.listening import refuse_wildcard
from kafkascope.proxy.relay.proxy_header import MODES, NO_HEADERS, ProxyProtocol

if TYPE_CHECKING:
    from kafkascope.proxy.engine.route import Mode
    from kafkascope.proxy.engine.tls import ClientTls, UpstreamTls
    from kafkascope.proxy.rules.rules import Rule

FITTING: Final = 78
"""Columns of --help-faults."""
DEFAULT_LISTEN: Final = "127.0.0.1:19092"


@dataclass(frozen=True)
class ProxyOptions:
    """The options of one proxy."""

    upstream: str
    listen: str
    mode: Mode
    record: Path | None
    rotate_bytes: int
    rotate_s: float
    keep_bytes: int
    with_secrets: bool
    overwrite: bool
    rule_files: tuple[Path, ...]
    scripts: tuple[Path, ...]
    faults: tuple[str, ...]
    hold: tuple[str, ...]
    filter: str
    """Which exchanges are printed."""
    open: bool
    quiet: bool
    json: bool
    verbose: bool
    port_base: int | None
    advertise: str | None
    proxy_protocol: ProxyProtocol
    """Whether clients, or brokers, get headers of it."""
    allow_brokers: tuple[str, ...]
    """Networks in which brokers may be, whatever the upstream is."""
    clamp: bool
    tls: ClientTls | None
    upstream_tls: UpstreamTls | None
    folder: Path
    schemas: SchemaOptions
    """What keys and values are decoded with, for rules and held frames."""
    buffer_bytes: int
    metrics: Address | None
    metrics_hosts: tuple[str, ...]
    """Hosts that requests for the metrics may name, besides loopback and where it listens."""
    control: str
    """A path, "-" for stdin and stdout, "none"; empty: the usual place."""
    ready_file: Path | None
    grace_s: float
    until_eof: bool
    """End when stdin does."""
    arguments: tuple[str, ...]
    """The command line again, for the process that `--open` starts."""

    def rules(self) -> list[Rule]:
        """All rules: of files, `--fault`, `--hold`, `--script`; a usage error when one is wrong."""
        from kafkascope.analyzer.filter.language import FilterError
        from kafkascope.proxy.control.steering import hold_rules
        from kafkascope.proxy.rules.faults import FaultError, parse_fault
        from kafkascope.proxy.rules.ruleset import load_rules

        found: list[Rule] = []
        try:
            for path in self.rule_files:
                found += load_rules(path)
            found += [parse_fault(text) for text in self.faults]
            for text in self.hold:
                found += hold_rules(text)
            if self.scripts:
                from kafkascope.proxy.rules.scripts.rule import load_script

                for path in self.scripts:
                    found += load_script(path)
        except (FaultError, FilterError, OSError) as error:
            raise click.UsageError(str(error)) from None
        return found


class Quantity(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A size or a duration with its unit."""

    def __init__(self, name: str, read: Callable[[str], int]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


_PATH: Final = click.Path(path_type=Path)


def _hosts(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Names as a Host header has them; a usage error for anything else."""
    from kafkascope.proxy.hosts import host_named

    hosts = {each: host_named(each) for each in given}
    wrong = [each for each, host in hosts.items() if host is None]
    if wrong:
        raise click.BadParameter(f'"{wrong[0]}" is not a host name', context, option)
    return tuple(host for host in hosts.values() if host is not None)


def _networks(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Networks; a usage error for anything else."""
    from kafkascope.proxy.engine.destinations import BadNetwork, parse_network

    try:
        return tuple(str(parse_network(each)) for each in given)
    except BadNetwork as error:
        raise click.BadParameter(str(error), context, option) from None


def _print_faults(context: click.Context, option: click.Parameter, given: bool) -> None:
    """Print the grammar of --fault and all actions, and exit."""
    if not given:
        return
    from textwrap import fill

    from kafkascope.proxy.rules.actions import BROKER, CLIENT
    from kafkascope.proxy.rules.faults import FAULTS
    from kafkascope.proxy.rules.triggers import USAGE

    document("FILTER -> ACTION ARGUMENTS [on request|response] [TRIGGER]\n")
    document("FILTER is a display filter (see `kafkascope fields`); an empty one matches all.\n")
    document("ACTION")
    names: dict[tuple[int, ...], str] = {(CLIENT,): "requests", (BROKER,): "responses"}
    for action in FAULTS.values():
        acts = names.get(action.sides)
        if acts is None:
            acts = "requests, responses" if action.sides[0] == CLIENT else "responses, requests"
        document(fill(action.usage, FITTING, initial_indent="  ", subsequent_indent="    "))
        for text in (action.doc, f"applies to {acts}"):
            document(fill(text, FITTING, initial_indent=" " * 6, subsequent_indent=" " * 6))
    document("\nTRIGGER")
    for usage, meaning in USAGE:
        document(f"  {usage:20}{meaning}")
    document(
        "\nExamples\n"
        "  api == Produce and topic == orders -> error NOT_LEADER_OR_FOLLOWER first 3\n"
        '  api == Fetch and client ~ "^billing" -> delay 50ms..200ms p=0.1 seed=7\n'
        "  group == orders and api == JoinGroup -> stamp REBALANCE_IN_PROGRESS once"
    )
    context.exit()


_network: Final = partial(option, section="Network")
_rules: Final = partial(option, section="Rules")
_recording: Final = partial(option, section="Recording")
_tls: Final = partial(option, section="TLS")
_control: Final = partial(option, section="Control")
_output: Final = partial(option, section="Output")

_OPTIONS: Final = (
    _network(
        "--upstream",
        default="",
        metavar="HOST:PORT[,...]",
        help="Brokers to connect to; several are tried in order",
    ),
    _network(
        "--listen",
        default=DEFAULT_LISTEN,
        show_default=True,
        metavar="[HOST]:PORT",
        help="Address for clients; port 0 picks a free one",
    ),
    _network("--expose", is_flag=True, help="Allow --listen and --metrics on all interfaces"),
    _network(
        "--mode",
        type=click.Choice(["reverse", "transparent", "socks5"]),
        metavar="MODE",
        default="reverse",
        show_default=True,
        help="reverse: clients bootstrap from the proxy; transparent: a firewall redirects"
        " connections; socks5: clients use the proxy as SOCKS server",
    ),
    _network(
        "--port-base",
        type=int,
        metavar="N",
        help="Base port: the listener of node 3 gets port N+3 (default: free ports)",
    ),
    _network(
        "--advertise", metavar="HOST", help="Host in the addresses for clients (default: --listen)"
    ),
    _network(
        "--allow-broker",
        "allow_brokers",
        multiple=True,
        metavar="NETWORK",
        callback=_networks,
        help="Private or local network in which to connect to brokers; repeatable",
    ),
    _network(
        "--proxy-protocol",
        type=click.Choice(list(MODES)),
        metavar="MODE",
        help="PROXY protocol: accept headers of a load balancer, send (v2) or send-v1 them to"
        " brokers, both (default: none)",
    ),
    _network(
        "--no-clamp",
        is_flag=True,
        help="Do not limit ApiVersions to versions kafkascope can decode",
    ),
    _network(
        "--buffer",
        type=Quantity("size", size),
        metavar="SIZE",
        default="512MB",
        show_default=True,
        help="Total buffer memory across connections",
    ),
    _rules(
        "--fault",
        "faults",
        multiple=True,
        metavar="RULE",
        help="Fault to inject, see --help-faults; repeatable",
    ),
    _rules(
        "--help-faults",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_faults,
        help="Print the syntax of --fault, with all actions, and exit",
    ),
    _rules(
        "--hold",
        multiple=True,
        metavar="FILTER",
        help="Hold matching frames until they are released; repeatable",
    ),
    _rules(
        "--rules",
        "rule_files",
        type=FILE,
        multiple=True,
        metavar="FILE",
        help="File of faults (TOML), see docs/faults.md; repeatable",
    ),
    _rules(
        "--script",
        "scripts",
        type=FILE,
        multiple=True,
        metavar="FILE",
        help="File of Python rules, see docs/scripts.md; repeatable",
    ),
    _recording(
        "-w",
        "--write",
        "record",
        type=_PATH,
        metavar="FILE",
        help="Record traffic to this pcapng file",
    ),
    _recording(
        "--rotate-bytes",
        type=Quantity("size", size),
        metavar="SIZE",
        default=0,
        help="Start a new file at this size (default: never)",
    ),
    _recording(
        "--rotate-time",
        type=Quantity("duration", duration),
        metavar="TIME",
        default=0,
        help="Start a new file at this age (default: never)",
    ),
    _recording(
        "--keep-bytes",
        type=Quantity("size", size),
        metavar="SIZE",
        default=0,
        help="Delete the oldest files beyond this total size (default: keep all)",
    ),
    _recording("--overwrite", is_flag=True, help="Replace an existing recording"),
    _recording("--with-secrets", is_flag=True, help="Record passwords and tokens unmasked"),
    _tls("--tls", is_flag=True, help="Use TLS towards clients, with a generated certificate"),
    _tls(
        "--tls-cert",
        type=FILE,
        metavar="FILE",
        help="Certificate chain for clients, PEM; implies --tls",
    ),
    _tls(
        "--tls-key",
        type=FILE,
        metavar="FILE",
        help="Private key of --tls-cert (default: in the same file)",
    ),
    _tls(
        "--tls-client-ca",
        type=FILE,
        metavar="FILE",
        help="CA bundle for client certificates, which become mandatory; implies --tls",
    ),
    _tls("--upstream-tls", is_flag=True, help="Use TLS towards brokers"),
    _tls(
        "--upstream-ca",
        type=FILE,
        metavar="FILE",
        help="CA bundle for brokers (default: public CAs)",
    ),
    _tls(
        "--upstream-cert",
        type=FILE,
        metavar="FILE",
        help="Client certificate for brokers, PEM",
    ),
    _tls(
        "--upstream-key",
        type=FILE,
        metavar="FILE",
        help="Private key of --upstream-cert (default: in the same file)",
    ),
    _tls(
        "--upstream-name",
        metavar="NAME",
        help="Name to verify in broker certificates (default: the host)",
    ),
    _tls("--upstream-insecure", is_flag=True, help="Skip certificate verification"),
    _tls(
        "--confdir",
        type=_PATH,
        metavar="DIR",
        help="Folder of the generated CA (default: ~/.kafkascope)",
    ),
    _control("--open", is_flag=True, help="Open the terminal UI on the proxy"),
    _control(
        "--control",
        default="",
        metavar="PATH",
        help="Control socket; - for stdin and stdout, none for no control"
        " (default: a socket of yours)",
    ),
    _control(
        "--metrics", metavar="[HOST]:PORT", help="Address of Prometheus metrics (default: none)"
    ),
    _control(
        "--metrics-host",
        "metrics_hosts",
        multiple=True,
        metavar="NAME",
        callback=_hosts,
        help="Additional host name that --metrics answers to; repeatable",
    ),
    _control(
        "--ready-file",
        type=_PATH,
        metavar="FILE",
        help="File to write the address to when clients may connect",
    ),
    _control(
        "--grace",
        type=Quantity("duration", duration),
        metavar="TIME",
        default="5s",
        show_default=True,
        help="Time to wait for in-flight responses at shutdown",
    ),
    _control("--until-eof", is_flag=True, hidden=True, help="Exit when stdin ends"),
    _output("-Y", "--filter", default="", metavar="FILTER", help="Print only matching exchanges"),
    _output("--json", is_flag=True, help="Print exchanges as JSON lines"),
    _output("-q", "--quiet", is_flag=True, help="Print no exchanges"),
    _output("-v", "--verbose", is_flag=True, help="Show more diagnostic messages"),
    *SCHEMA_OPTIONS,
)


def proxy_options(function: Callable[..., int]) -> Callable[..., int]:
    """All options, handed to the command as `options`."""

    @functools.wraps(function)
    def command(*arguments: Any, **given: Any) -> int:
        # Before any file, socket or child process: a child would fail with a message of its own.
        require("kafkascope proxy")
        if given["open"]:
            require("kafkascope proxy --open")
        return function(*arguments, options=_made(given))

    for declare in reversed(_OPTIONS):
        command = declare(command)
    return command


def _made(given: dict[str, Any]) -> ProxyOptions:
    try:
        listen = parse_address(given["listen"], port=0)
        metrics = parse_address(given["metrics"], port=0) if given["metrics"] else None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if not given["expose"]:
        refuse_wildcard("--listen", given["listen"], listen.host)
        if metrics is not None:
            refuse_wildcard("--metrics", given["metrics"], metrics.host)
    if given["filter"]:
        _check_filter(given["filter"])
    if given["open"] and given["control"] in ("-", "none"):
        raise click.UsageError("--open needs the control socket: leave out --control")
    if given["open"] and given["json"]:
        raise click.UsageError("--json prints exchanges, --open shows them: leave one of them out")
    if given["mode"] == "reverse" and not given["upstream"]:
        raise click.UsageError("--upstream is missing: write --upstream HOST:PORT")
    if given["metrics_hosts"] and metrics is None:
        raise click.UsageError("--metrics-host needs --metrics [HOST]:PORT")
    if given["control"] == "-" and not given["quiet"]:
        raise click.UsageError("--control - uses stdout: add --quiet")
    return ProxyOptions(
        upstream=given["upstream"],
        listen=given["listen"],
        mode=given["mode"],
        record=given["record"],
        rotate_bytes=given["rotate_bytes"],
        rotate_s=given["rotate_time"] / 1e9,
        keep_bytes=given["keep_bytes"],
        with_secrets=given["with_secrets"],
        overwrite=given["overwrite"],
        rule_files=given["rule_files"],
        scripts=given["scripts"],
        faults=given["faults"],
        hold=given["hold"],
        filter=given["filter"],
        open=given["open"],
        quiet=given["quiet"],
        json=given["json"],
        verbose=given["verbose"],
        port_base=given["port_base"],
        advertise=given["advertise"],
        proxy_protocol=MODES.get(given["proxy_protocol"] or "", NO_HEADERS),
        allow_brokers=given["allow_brokers"],
        clamp=not given["no_clamp"],
        tls=_client_tls(given),
        upstream_tls=_upstream_tls(given),
        folder=given["confdir"] or Path.home() / ".kafkascope",
        schemas=SchemaOptions(*(given[name] for name in SCHEMAS)),
        metrics=metrics,
        metrics_hosts=given["metrics_hosts"],
        buffer_bytes=given["buffer"],
        control=given["control"],
        ready_file=given["ready_file"],
        grace_s=given["grace"] / 1e9,
        until_eof=given["until_eof"],
        arguments=tuple(each for each in sys.argv[2:] if each != "--open"),
    )


def _check_filter(text: str) -> None:
    from kafkascope.analyzer.filter.language import FilterError, bind
    from kafkascope.analyzer.filter.saved import spelled

    try:
        bind(spelled(text))
    except FilterError as error:
        raise click.UsageError(str(error)) from None


def _client_tls(given: dict[str, Any]) -> ClientTls | None:
    from kafkascope.proxy.engine.tls import ClientTls

    if not (given["tls"] or given["tls_cert"] or given["tls_client_ca"]):
        return None
    return ClientTls(given["tls_cert"], given["tls_key"], given["tls_client_ca"])


def _upstream_tls(given: dict[str, Any]) -> UpstreamTls | None:
    from kafkascope.proxy.engine.tls import UpstreamTls

    names = ("tls", "ca", "cert", "key", "name", "insecure")
    if not any(given[f"upstream_{name}"] for name in names):
        return None
    return UpstreamTls(
        given["upstream_ca"],
        given["upstream_cert"],
        given["upstream_key"],
        given["upstream_insecure"],
        given["upstream_name"],
    )
