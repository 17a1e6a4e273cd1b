"""`kafkascope serve`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

import click

from analyzer.commands.options import Wish, input_options

if TYPE_CHECKING:
    from proxy.serve.library import Library
    from proxy.serve.model import Model

BUSY = 3


@click.command()
@input_options
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    metavar="HOST:PORT",
    help="Where the first node listens; the others on the ports behind it (0: any).",
)
@click.option(
    "--pace",
    type=click.Choice(["fast", "original"]),
    default="fast",
    show_default=True,
    help="original: captured answers come after the captured time.",
)
@click.option("--until-eof", is_flag=True, hidden=True)
def serve(wish: Wish, listen: str, pace: str, until_eof: bool) -> int:
    """The capture becomes a broker: real clients, of any language, connect and get its topics,
    records
    and answers.

    \b
      kafkascope serve prod.pcapng --listen 127.0.0.1:19092
      kcat -b 127.0.0.1:19092 -C -t orders -o beginning -e
    """
    from analyzer.commands.reading import Reading
    from analyzer.session import Session
    from proxy.serve.library import Library
    from proxy.serve.model import Model

    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise click.BadParameter(f'"{listen}": write HOST:PORT', param_hint="--listen")
    with Reading(wish, spool=True) as reading:
        context = reading.capture.context
        session = Session(context, reading.capture.source.read)
        model, library = Model(context.names), Library(session)
        for row, exchange in reading.rows():
            index = session.add(exchange, row)
            model.add(exchange)
            library.add(exchange, index)
        damaged = reading.finish()
        model.finish()
        if not model.asked:
            click.echo("kafkascope: there is nothing to serve", err=True)
            return damaged or BUSY
        code = asyncio.run(
            _serve(model, library, host.strip("[]"), int(port), wish, pace, until_eof)
        )
    return code or damaged


async def _serve(
    model: Model,
    library: Library,
    host: str,
    port: int,
    wish: Wish,
    pace: str,
    until_eof: bool,
) -> int:
    from proxy.serve.broker import Broker
    from proxy.serve.server import Server

    def told(text: str) -> None:
        if not wish.quiet:
            click.echo(f"kafkascope: {text}", err=True)

    server = Server(told)
    places: dict[int, tuple[str, int]] = {}
    try:
        for place, node in enumerate(sorted(model.nodes)):
            places[node] = await server.listen(host, port + place if port else 0)
    except OSError as error:
        click.echo(f"kafkascope: {host}:{port}: {error.strerror or error}", err=True)
        await server.stop()
        return BUSY
    server.broker = Broker(model, library, places, original_pace=pace == "original")
    first = places[min(places)]
    topics = sum(1 for topic in model.topics.values() if topic.partitions)
    click.echo(f"{first[0]}:{first[1]}")
    told(f"{len(places)} nodes, {topics} topics; bootstrap.servers={first[0]}:{first[1]}")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop.set)
    if until_eof:
        # Whoever started us holds our stdin: when it is gone, we go.
        loop.add_reader(sys.stdin.fileno(), _read_stdin, stop)
    await stop.wait()
    await server.stop()
    told(f"{server.requests} requests answered")
    return 0


def _read_stdin(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1 << 16):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop.set()
