"""`kafkascope serve`: runs a mock broker from a capture."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import FILE, reading_options
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.terminal import out, say
from kafkascope.analyzer.text import plural
from kafkascope.errors import UNAVAILABLE
from kafkascope.extras import require
from kafkascope.proxy import answers
from kafkascope.proxy.engine.directory import Address, whole_address
from kafkascope.proxy.hosts import HIGHEST_PORT, refuse_wildcard
from kafkascope.proxy.limits import LIMITS
from kafkascope.proxy.sasl import PASSWORD
from kafkascope.release import release

if TYPE_CHECKING:
    import ssl

    from kafkascope.proxy.serve.broker import Library
    from kafkascope.proxy.serve.captured_cluster import CapturedCluster
    from kafkascope.proxy.serve.logins import Accounts


class ServeOptions(NamedTuple):
    """The options of `serve` alone."""

    host: str
    port: int
    advertise: str | None
    original_pace: bool
    controlled: bool
    until_eof: bool
    accounts: Accounts
    tls: ssl.SSLContext | None


_FOLDER: Final = click.Path(path_type=Path)
_network: Final = partial(setting, section="Network")
_login: Final = partial(setting, section="Login")
_tls: Final = partial(setting, section="TLS")


@command()
@reading_options()
@_network(
    "--listen",
    "HOST:PORT",
    "Address of the first broker; others use the next ports; port 0 picks free ones",
    default="127.0.0.1:0",
)
@_network("--expose", "", "Allow --listen on all interfaces")
@_network("--advertise", "HOST", "Host in the addresses for clients (default: --listen)")
@setting(
    "--pace",
    "PACE",
    "fast, or original: reproduce captured response latency",
    type=click.Choice(["fast", "original"]),
    default="fast",
)
@_login(
    "--user users",
    "NAME[:PASSWORD]",
    f"User that may log in, with SASL (default password: ${PASSWORD})",
    multiple=True,
)
@_login("--users file", "FILE", "File of users, NAME:PASSWORD on each line", type=FILE)
@_tls("--tls", "", "Use TLS, with a generated certificate")
@_tls("--tls-cert", "FILE", "Certificate chain for clients, PEM; implies --tls", type=FILE)
@_tls("--tls-key", "FILE", "Private key of --tls-cert (default: in the same file)", type=FILE)
@_tls("--confdir", "DIR", "Folder of the generated CA (default: ~/.kafkascope)", type=_FOLDER)
@setting(
    "--control",
    "-",
    "Take control requests from stdin, see docs/control.md; exit when it ends",
    type=click.Choice(["-"]),
)
@setting("--until-eof", "", "Exit when stdin ends", hidden=True)
def serve(
    options: ReadOptions,
    listen: str,
    expose: bool,
    advertise: str | None,
    pace: str,
    users: tuple[str, ...],
    file: Path | None,
    tls: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
    confdir: Path | None,
    control: str | None,
    until_eof: bool,
) -> int:
    """Run a mock broker from a capture.

    Clients connect, join groups, and get the captured topics, records, and responses. They may
    also produce, which changes memory only. The address is printed.

    \b
      kafkascope serve prod.pcapng --listen 127.0.0.1:19092
      kcat -b 127.0.0.1:19092 -C -t orders -o beginning -e
    """
    if tls and tls_cert is None:
        require("kafkascope serve --tls", instead="kafkascope serve --tls-cert FILE")
    from kafkascope.proxy.serve.logins import Accounts

    address = whole_address(listen)
    if address is None:
        raise click.BadParameter(f'"{listen}": write HOST:PORT', param_hint="--listen")
    if control is not None and not answers.has_pipes():
        raise click.UsageError(answers.NO_PIPES)
    host, port = address
    if not expose:
        refuse_wildcard("--listen", listen, host)
    settings = ServeOptions(
        host,
        port,
        advertise,
        pace == "original",
        control is not None,
        until_eof,
        Accounts(_users(users, file)),
        _context(advertise or host, tls_cert, tls_key, confdir) if tls or tls_cert else None,
    )
    return _read_and_serve(options, settings)


def _users(given: tuple[str, ...], file: Path | None) -> dict[str, str]:
    """Return passwords by name, of --user and of the lines of --users."""
    users = {}
    for text in given:
        name, colon, password = text.partition(":")
        if not colon and PASSWORD not in os.environ:
            raise click.UsageError(
                f"--user {name}: no password; write NAME:PASSWORD, or set ${PASSWORD}"
            )
        users[name] = password if colon else os.environ[PASSWORD]
    for number, line in enumerate(() if file is None else _lines_of(file), 1):
        name, colon, password = line.partition(":")
        if not line or line.startswith("#"):
            continue
        if not colon:
            raise click.UsageError(f"{file}, line {number}: write NAME:PASSWORD")
        users[name] = password
    if "" in users:
        raise click.UsageError("a user has no name: write --user NAME:PASSWORD")
    return users


def _lines_of(file: Path) -> list[str]:
    from kafkascope.captures.inputs.small import read_limited

    try:
        return read_limited(file).decode("utf-8").splitlines()
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{file}: not UTF-8 text; write lines NAME:PASSWORD") from None


def _context(
    host: str, certificate: Path | None, key: Path | None, folder: Path | None
) -> ssl.SSLContext:
    try:
        if certificate is not None:
            return given_context(certificate, key)
        context, ca = _generated_context(host, folder or Path.home() / ".kafkascope")
    except OSError as error:
        raise click.UsageError(f"{certificate or 'certificate'}: {error.strerror}") from None
    say(f"clients must trust the CA in {ca}")
    return context


def given_context(certificate: Path | str, key: Path | None = None) -> ssl.SSLContext:
    """Return a context with this certificate; `OSError` if it cannot be used."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def _generated_context(host: str, folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Return a context with a generated certificate for the host, and the file of its CA, which
    `kafkascope proxy` generates in the same folder, too."""
    import tempfile

    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    from kafkascope.proxy.engine.tls import ClientTls, Tls, general_names

    names = general_names(host, "127.0.0.1", "localhost")
    tls = Tls(ClientTls(), folder=folder)
    entry = tls.store().get_cert(host, names, None)
    assert tls.ca_file is not None
    key = entry.privatekey.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with tempfile.NamedTemporaryFile() as file:  # readable by its owner alone
        file.write(entry.cert.to_pem() + key)
        file.flush()
        return given_context(file.name), tls.ca_file


def _read_and_serve(options: ReadOptions, settings: ServeOptions) -> int:
    from kafkascope.analyzer.reading.reading import Reading
    from kafkascope.analyzer.session.session import Session
    from kafkascope.proxy.serve.broker import Library
    from kafkascope.proxy.serve.captured_cluster import CapturedCluster

    with Reading(options, spool=True, once=True) as reading:
        reading.demand_packets("serve")
        capture = reading.capture
        context = capture.context
        session = Session(context, capture.source.read, plaintext=capture.plaintext)
        model, library = CapturedCluster(context.names), Library(session)
        zookeepers = 0
        for _, exchange in reading.rows():
            if exchange.zookeeper is not None:
                zookeepers += 1
                continue
            model.add(exchange)
            library.add(exchange)
        damaged = reading.finish()
        model.finish()
        if zookeepers:
            say(f"{plural(zookeepers, 'message')} of ZooKeeper skipped: only Kafka is served")
        if model.records_dropped:
            say(
                f"records beyond {model.limits.captured_bytes >> 20} MB are not served, of "
                f"{plural(model.records_dropped, 'message')}: select a part with --from and --to"
            )
        if model.nodes_truncated:
            say(
                f"brokers beyond {model.limits.served_nodes} are not served: "
                f"{min(model.nodes)} stands for them"
            )
        if not model.used_versions:
            say(
                "there is nothing to serve: no Kafka responses are selected; see what the capture"
                " has with `kafkascope ls`"
            )
            return damaged or UNAVAILABLE
        code = asyncio.run(_serve(model, library, options, settings))
    return code or damaged


async def _serve(
    model: CapturedCluster, library: Library, options: ReadOptions, settings: ServeOptions
) -> int:
    from kafkascope.proxy.serve.broker import Broker
    from kafkascope.proxy.serve.server import Server

    notices: deque[str] = deque(maxlen=LIMITS.notices)

    def report(text: str) -> None:
        notices.append(text)
        if not options.quiet:
            say(text)

    server = Server(report, accounts=settings.accounts, tls=settings.tls)
    addresses: dict[int, tuple[str, int]] = {}
    port = settings.port
    try:
        for index, node in enumerate(sorted(model.nodes)):
            port = settings.port + index if settings.port else 0
            if port > HIGHEST_PORT:
                needed = plural(len(model.nodes), "node")
                raise OSError(0, f"ports exceed 65535: {needed} listen from {settings.port} on")
            host, bound_port = await server.listen(settings.host, port)
            addresses[node] = settings.advertise or host, bound_port
    except OSError as error:
        # `socket.gaierror` has numbers of its own, below 0.
        system = error.errno is not None and error.errno > 0
        reason = os.strerror(error.errno or 0) if system else error.strerror or error
        say(f"{settings.host}:{port}: {reason}")
        await server.stop()
        return UNAVAILABLE
    server.broker = Broker(
        model,
        library,
        addresses,
        original_pace=settings.original_pace,
        login=settings.accounts.required,
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    bootstrap = str(Address(*addresses[min(addresses)]))
    topics = sum(1 for topic in model.topics.values() if topic.partitions)
    channel: asyncio.Task[None] | None = None
    if settings.controlled:
        nodes = {node: str(Address(*address)) for node, address in addresses.items()}
        channel = asyncio.create_task(_control(bootstrap, nodes, notices, stop))
    else:
        out(bootstrap)  # last, because a script that reads it may end this process at once
    counts = f"{plural(len(addresses), 'node')}, {plural(topics, 'topic')}"
    report(f"{counts}; bootstrap.servers={bootstrap}")
    if settings.until_eof and channel is None:
        # The parent process holds the other end of stdin.
        channel = asyncio.create_task(answers.stdin_ends())
        channel.add_done_callback(lambda _: stop.set())
    await stop.wait()
    if channel is not None:
        channel.cancel()
    await server.stop()
    report(f"{server.requests} requests answered")
    return 0


async def _control(
    bootstrap: str, nodes: dict[int, str], notices: deque[str], stop: asyncio.Event
) -> None:
    """Answer control requests of stdin on stdout (docs/control.md) until stdin ends; then stop.
    `nodes`: the listener of each; `notices`: the latest lines of stderr."""
    started_ns = time.time_ns()

    def do(request: dict[str, Any]) -> dict[str, Any]:
        match request.get("do"):
            case "status":
                return {
                    "protocol": answers.PROTOCOL,
                    "pid": os.getpid(),
                    "version": release(),
                    "started_ns": started_ns,
                    "bootstrap": bootstrap,
                    "mode": "serve",
                    "nodes": {str(node): {"listener": text} for node, text in nodes.items()},
                    "notices": list(notices),
                }
            case "stop":
                stop.set()
                return {}
            case other:
                raise ValueError(f"unknown command {other!r} for a served capture")

    try:
        reader, writer = await answers.standard_pipes()
        while line := await reader.readline():
            request, answer = answers.read(line)
            if not answer:
                try:
                    answer = answers.response(request, do(request))
                except answers.REFUSED as error:
                    answer = answers.response(request, error)
            writer.write(answer)
            await writer.drain()
    except (OSError, ValueError):
        pass  # the client left, sent a line without end, or gave no pipes
    finally:
        stop.set()
