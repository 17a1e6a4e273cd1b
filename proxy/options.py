"""The options of `kafkascope proxy`, and their checks."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.options import check_schemas
from kafkascope.analyzer.filter.values import duration, size
from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.analyzer.terminal import document
from kafkascope.extras import require
from kafkascope.proxy.engine.directory import Address, parse_address

if TYPE_CHECKING:
    from kafkascope.proxy.engine.route import Mode
    from kafkascope.proxy.engine.tls import ClientTls, UpstreamTls
    from kafkascope.proxy.rules.rules import Rule

WILDCARDS: Final = frozenset({"0.0.0.0", "::", "*", ""})
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
_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)


def _hosts(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Names as a Host header has them; a usage error for anything else."""
    from kafkascope.proxy.hosts import host_named

    hosts = {each: host_named(each) for each in given}
    wrong = [each for each, host in hosts.items() if host is None]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is no name of a host", context, option)
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
        document(f"  {action.usage}\n      {action.doc}\n      acts on {acts}")
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


_OPTIONS: Final = (
    click.option("--upstream", default="", metavar="HOST:PORT[,...]", help="Tried in order."),
    click.option("--listen", default=DEFAULT_LISTEN, show_default=True, metavar="[HOST]:PORT"),
    click.option(
        "--expose", is_flag=True, help="Allow --listen on all interfaces: everybody may connect."
    ),
    click.option(
        "--mode",
        type=click.Choice(["reverse", "transparent", "socks5"]),
        default="reverse",
        show_default=True,
        help="transparent: connections that the firewall redirects; no address is replaced.",
    ),
    click.option("--port-base", type=int, help="A broker's listener has port N + node id."),
    click.option("--advertise", metavar="HOST", help="What clients are told as our address."),
    click.option(
        "--allow-broker",
        "allow_brokers",
        multiple=True,
        metavar="NETWORK",
        callback=_networks,
        help="Connect to brokers there though the upstream is not of that kind; may be repeated.",
    ),
    click.option("--no-clamp", is_flag=True, help="Pass on versions that are not known."),
    click.option("-w", "--write", "record", type=_PATH, help="Record to this pcapng file."),
    click.option("--rotate-bytes", type=Quantity("size", size), default=0, help="Size of a file."),
    click.option(
        "--rotate-time", type=Quantity("duration", duration), default=0, help="Age of a file."
    ),
    click.option(
        "--keep-bytes",
        type=Quantity("size", size),
        default=0,
        help="Of all files.",
    ),
    click.option("--overwrite", is_flag=True, help="Replace a recording that is there."),
    click.option("--with-secrets", is_flag=True, help="Record passwords and tokens as they are."),
    click.option("--rules", "rule_files", type=_FILE, multiple=True, help="Faults, in TOML."),
    click.option(
        "--script", "scripts", type=_FILE, multiple=True, help="Rules in Python: docs/scripts.md."
    ),
    click.option(
        "--fault",
        "faults",
        multiple=True,
        metavar="RULE",
        help="Inject a fault; repeatable; see --help-faults.",
    ),
    click.option(
        "--help-faults",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_faults,
        help="Print the grammar of --fault with all actions, and exit.",
    ),
    click.option("--hold", multiple=True, metavar="FILTER", help="Hold what matches."),
    click.option(
        "--schemas",
        "schema_folders",
        multiple=True,
        metavar="DIR",
        help="Schemas of keys and values, for rules and held frames.",
    ),
    click.option(
        "--schema",
        "assigned",
        multiple=True,
        metavar="TOPIC[:key]=FILE[#MESSAGE]",
        callback=check_schemas,
        help="The schema of a topic whose values carry no id.",
    ),
    click.option("--registry", metavar="URL", help="Ask this schema registry for others."),
    click.option("--registry-ca", type=_FILE, help="PEM of CAs to trust there."),
    click.option("--tls", is_flag=True, help="Clients speak TLS."),
    click.option("--tls-cert", type=_FILE, help="PEM certificate chain to show to clients."),
    click.option("--tls-key", type=_FILE, help="Its key; else in the same file."),
    click.option("--tls-client-ca", type=_FILE, help="CAs of client certificates."),
    click.option("--upstream-tls", is_flag=True, help="Brokers speak TLS."),
    click.option("--upstream-ca", type=_FILE, help="PEM of CAs to trust."),
    click.option("--upstream-cert", type=_FILE, help="PEM of our certificate for brokers."),
    click.option("--upstream-key", type=_FILE, help="Its key; else in the same file."),
    click.option("--upstream-name", help="Name to verify instead of the host."),
    click.option("--upstream-insecure", is_flag=True, help="Believe any certificate."),
    click.option("--confdir", type=_PATH, help="Where our certificate authority is kept."),
    click.option(
        "--buffer",
        type=Quantity("size", size),
        default="512MB",
        show_default=True,
        help="What all connections together may keep.",
    ),
    click.option("--metrics", metavar="[HOST]:PORT", help="Counters for Prometheus; loopback."),
    click.option(
        "--metrics-host",
        "metrics_hosts",
        multiple=True,
        metavar="NAME",
        callback=_hosts,
        help="A name under which --metrics answers, besides loopback and its own address.",
    ),
    click.option(
        "--control", default="", metavar="PATH", help='A socket; "-": stdin and stdout; "none".'
    ),
    click.option("--ready-file", type=_PATH, help="Written when clients may connect."),
    click.option(
        "--grace",
        type=Quantity("duration", duration),
        default="5s",
        show_default=True,
        help="For answers that are on their way at the end.",
    ),
    click.option("--open", is_flag=True, help="Open the terminal interface on it."),
    click.option("--until-eof", is_flag=True, hidden=True),
    click.option("-Y", "--filter", default="", metavar="FILTER", help="Print only what matches."),
    click.option("--json", is_flag=True, help="One JSON object per exchange."),
    click.option("-q", "--quiet", is_flag=True, help="Print no exchanges."),
    click.option("-v", "--verbose", is_flag=True, help="Tell what happens inside."),
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

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _made(given: dict[str, Any]) -> ProxyOptions:
    try:
        listen = parse_address(given["listen"], port=0)
        metrics = parse_address(given["metrics"], port=0) if given["metrics"] else None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if listen.host in WILDCARDS and not given["expose"]:
        raise click.UsageError(
            f"--listen {given['listen']} lets everybody in; add --expose if that is meant"
        )
    if given["filter"]:
        _check_filter(given["filter"])
    if given["open"] and given["control"] in ("-", "none"):
        raise click.UsageError("--open needs the control socket")
    if given["mode"] == "reverse" and not given["upstream"]:
        raise click.UsageError("--upstream HOST:PORT is missing")
    if given["metrics_hosts"] and metrics is None:
        raise click.UsageError("--metrics-host needs --metrics")
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
        allow_brokers=given["allow_brokers"],
        clamp=not given["no_clamp"],
        tls=_client_tls(given),
        upstream_tls=_upstream_tls(given),
        folder=given["confdir"] or Path.home() / ".kafkascope",
        schemas=_schemas(given),
        metrics=metrics,
        metrics_hosts=given["metrics_hosts"],
        buffer_bytes=given["buffer"],
        control=given["control"],
        ready_file=given["ready_file"],
        grace_s=given["grace"] / 1e9,
        until_eof=given["until_eof"],
        arguments=tuple(each for each in sys.argv[2:] if each != "--open"),
    )


def _schemas(given: dict[str, Any]) -> SchemaOptions:
    ca = given["registry_ca"]
    return SchemaOptions(
        given["schema_folders"],
        given["assigned"],
        given["registry"],
        None if ca is None else str(ca),
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
