"""The options of `kafkascope proxy`, and their checks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.help import refusing, setting
from kafkascope.analyzer.commands.options import FILE, SCHEMA_OPTIONS, SCHEMAS
from kafkascope.analyzer.filter.values import duration, size
from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.analyzer.terminal import document
from kafkascope.extras import require
from kafkascope.proxy.engine.directory import Address, parse_address
from kafkascope.proxy.hosts import refuse_wildcard
from kafkascope.proxy.relay.proxy_header import MODES, NO_HEADERS

if TYPE_CHECKING:
    from kafkascope.proxy.engine.tls import ClientTls, UpstreamTls
    from kafkascope.proxy.rules.rules import Rule

# Columns of --help-faults.
FITTING: Final = 78
DEFAULT_LISTEN: Final = "127.0.0.1:19092"


@dataclass(frozen=True)
class ProxyOptions:
    """The options of one proxy."""

    engine: dict[str, Any]
    """Arguments of `KafkaProxy`, but for rules and recorder."""
    recording: dict[str, Any] | None
    """Arguments of `Recorder`; None: there is none."""
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
    schemas: SchemaOptions
    """Schemas of keys and values, for rules and held frames."""
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
        from kafkascope.proxy.control.steering import hold_rule
        from kafkascope.proxy.rules.faults import FaultError, load_rules, parse_fault

        found: list[Rule] = []
        try:
            for path in self.rule_files:
                found += load_rules(path)
            found += [parse_fault(text) for text in self.faults]
            found += map(hold_rule, self.hold)
            if self.scripts:
                from kafkascope.proxy.rules.scripts.script import load_script

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
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _hosts(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    from kafkascope.proxy.hosts import host_named

    hosts = {each: host_named(each) for each in given}
    wrong = [each for each, host in hosts.items() if host is None]
    if wrong:
        raise click.BadParameter(f'"{wrong[0]}" is not a host name', context, option)
    return tuple(host for host in hosts.values() if host is not None)


def _networks(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    from kafkascope.proxy.engine.destinations import BadNetwork, parse_network

    with refusing(BadNetwork):
        return tuple(str(parse_network(each)) for each in given)


def _print_faults(context: click.Context, option: click.Parameter, given: bool) -> None:
    """Print the grammar of --fault and all actions, and exit."""
    if not given:
        return
    from textwrap import fill

    from kafkascope.proxy.rules.faults import FAULTS
    from kafkascope.proxy.rules.faults.fault import USAGE
    from kafkascope.proxy.rules.verdicts import BROKER, CLIENT

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


def _with_unit(text: str) -> int:
    """Read a duration; a bare number, which filters read as milliseconds, may mean seconds here."""
    nanoseconds = duration(text)
    if nanoseconds and text[-1:].isdigit():
        raise ValueError(f"{text!r} has no unit: write {text}s, {text}ms, {text}m or {text}h")
    return nanoseconds


_PATH: Final = click.Path(path_type=Path)
# What stands for a value -> its type, where an option says none.
TYPES: Final = {
    "FILE": FILE,
    "DIR": _PATH,
    "N": int,
    "SIZE": Quantity("size", size),
    "TIME": Quantity("duration", _with_unit),
}


NEEDS: Final = (
    ("metrics_hosts", ("metrics",), "--metrics-host needs --metrics [HOST]:PORT"),
    ("tls_key", ("tls_cert",), "--tls-key needs --tls-cert FILE"),
    ("upstream_key", ("upstream_cert",), "--upstream-key needs --upstream-cert FILE"),
    ("rotate_bytes", ("record",), "--rotate-bytes needs -w FILE"),
    ("rotate_time", ("record",), "--rotate-time needs -w FILE"),
    ("keep_bytes", ("rotate_bytes", "rotate_time"), "--keep-bytes needs --rotate-bytes SIZE"),
)
"""Option -> others, of which it needs one, and what to type."""


def _setting(section: str, names: str, metavar: str, text: str, **settings: Any) -> Any:
    return setting(names, metavar, text, section=section, **{"type": TYPES.get(metavar)} | settings)


_network: Final = partial(_setting, "Network")
_rules: Final = partial(_setting, "Rules")
_recording: Final = partial(_setting, "Recording")
_tls: Final = partial(_setting, "TLS")
_control: Final = partial(_setting, "Control")
_output: Final = partial(_setting, "Output")

_OPTIONS: Final = (
    _network(
        "--upstream",
        "HOST:PORT[,...]",
        "Brokers to connect to; several are tried in order",
        default="",
    ),
    _network(
        "--listen",
        "[HOST]:PORT",
        "Address for clients; port 0 picks a free one",
        default=DEFAULT_LISTEN,
    ),
    _network("--expose", "", "Allow --listen and --metrics on all interfaces"),
    _network(
        "--mode",
        "MODE",
        "reverse: clients bootstrap from the proxy; transparent: a firewall redirects"
        " connections; socks5: clients use the proxy as SOCKS server",
        type=click.Choice(["reverse", "transparent", "socks5"]),
        default="reverse",
    ),
    _network(
        "--port-base",
        "N",
        "Base port: the listener of node 3 gets port N+3 (default: free ports)",
        type=click.IntRange(1, 65_535),
    ),
    _network("--advertise", "HOST", "Host in the addresses for clients (default: --listen)"),
    _network(
        "--allow-broker allow_brokers",
        "NETWORK",
        "Private or local network in which to connect to brokers",
        multiple=True,
        callback=_networks,
    ),
    _network(
        "--proxy-protocol",
        "MODE",
        "PROXY protocol: accept headers of a load balancer, send (v2) or send-v1 them to"
        " brokers, both (default: none)",
        type=click.Choice(list(MODES)),
    ),
    _network("--no-clamp", "", "Do not limit ApiVersions to versions kafkascope can decode"),
    _network("--buffer", "SIZE", "Total buffer memory across connections", default="512MB"),
    _rules("--fault faults", "RULE", "Fault to inject, see --help-faults", multiple=True),
    _rules(
        "--help-faults",
        "",
        "Print the syntax of --fault, with all actions, and exit",
        is_eager=True,
        expose_value=False,
        callback=_print_faults,
    ),
    _rules("--hold", "FILTER", "Hold matching frames until they are released", multiple=True),
    _rules(
        "--rules rule_files", "FILE", "File of faults (TOML), see docs/faults.md", multiple=True
    ),
    _rules("--script scripts", "FILE", "File of Python rules, see docs/scripts.md", multiple=True),
    _recording("-w --write record", "FILE", "Record traffic to this pcapng file", type=_PATH),
    _recording(
        "--rotate-bytes", "SIZE", "Start a new file at this size (default: never)", default=0
    ),
    _recording("--rotate-time", "TIME", "Start a new file at this age (default: never)", default=0),
    _recording(
        "--keep-bytes",
        "SIZE",
        "Delete the oldest files beyond this total size (default: keep all)",
        default=0,
    ),
    _recording("--overwrite", "", "Replace an existing recording"),
    _recording("--with-secrets", "", "Record passwords and tokens unmasked"),
    _tls("--tls", "", "Use TLS towards clients, with a generated certificate"),
    _tls("--tls-cert", "FILE", "Certificate chain for clients, PEM; implies --tls"),
    _tls("--tls-key", "FILE", "Private key of --tls-cert (default: in the same file)"),
    _tls(
        "--tls-client-ca",
        "FILE",
        "CA bundle for client certificates, which become mandatory; implies --tls",
    ),
    _tls("--upstream-tls", "", "Use TLS towards brokers; implied by the options below"),
    _tls("--upstream-ca", "FILE", "CA bundle for brokers (default: public CAs)"),
    _tls("--upstream-cert", "FILE", "Client certificate for brokers, PEM"),
    _tls("--upstream-key", "FILE", "Private key of --upstream-cert (default: in the same file)"),
    _tls("--upstream-name", "NAME", "Name to verify in broker certificates (default: the host)"),
    _tls("--upstream-insecure", "", "Skip certificate verification"),
    _tls("--confdir", "DIR", "Folder of the generated CA (default: ~/.kafkascope)"),
    _control("--open", "", "Open the terminal UI on the proxy"),
    _control(
        "--control",
        "PATH",
        "Control socket; - for stdin and stdout, none for no control (default: a private socket)",
        default="",
    ),
    _control("--metrics", "[HOST]:PORT", "Address of Prometheus metrics (default: none)"),
    _control(
        "--metrics-host metrics_hosts",
        "NAME",
        "Additional host name that --metrics answers to",
        multiple=True,
        callback=_hosts,
    ),
    _control(
        "--ready-file", "FILE", "File to write the address to when clients may connect", type=_PATH
    ),
    _control("--grace", "TIME", "Time to wait for in-flight responses at shutdown", default="5s"),
    _control("--until-eof", "", "Exit when stdin ends", hidden=True),
    _output("-Y --filter", "FILTER", "Print only matching exchanges", default=""),
    _output("--json", "", "Print exchanges as JSON lines"),
    _output("-q --quiet", "", "Print no exchanges"),
    _output("-v --verbose", "", "Show more diagnostic messages"),
    *SCHEMA_OPTIONS,
)


def proxy_options(function: Callable[..., int]) -> Callable[..., int]:
    """All options, handed to the command as `options`."""

    @wraps(function)
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
    for name, needed, text in NEEDS:
        if given[name] and not any(given[each] for each in needed):
            raise click.UsageError(text)
    if given["control"] == "-" and not given["quiet"]:
        raise click.UsageError("--control - uses stdout: add --quiet")
    schemas = SchemaOptions(*(given[name] for name in SCHEMAS))
    plain = ("upstream", "listen", "mode", "port_base", "advertise", "allow_brokers")
    engine = {name: given[name] for name in plain} | {
        "proxy_protocol": MODES.get(given["proxy_protocol"] or "", NO_HEADERS),
        "clamp": not given["no_clamp"],
        "tls": _client_tls(given),
        "upstream_tls": _upstream_tls(given),
        "folder": given["confdir"] or Path.home() / ".kafkascope",
        "buffer_bytes": given["buffer"],
        "schemas": schemas,
    }
    recording = {
        "path": given["record"],
        "rotate_bytes": given["rotate_bytes"],
        "rotate_s": given["rotate_time"] / 1e9,
        "keep_bytes": given["keep_bytes"],
        "overwrite": given["overwrite"],
        "secrets": given["with_secrets"],
    }
    made: dict[str, Any] = {
        "engine": engine,
        "recording": recording if given["record"] or not given["quiet"] else None,
        "schemas": schemas,
        "metrics": metrics,
        "grace_s": given["grace"] / 1e9,
        "arguments": tuple(each for each in sys.argv[2:] if each != "--open"),
    }
    # Others are called as their options are.
    same = tuple(each.name for each in fields(ProxyOptions) if each.name in given)
    return ProxyOptions(**{name: given[name] for name in same} | made)


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
    arguments = ("ca", "cert", "key", "insecure", "name")
    return UpstreamTls(*(given[f"upstream_{name}"] for name in arguments))
