"""`kafkascope tls-keys`: how to obtain a key log, and what a key log decrypts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import fill
from typing import Final, NamedTuple

import click

from kafkascope.analyzer.commands.help import CommandGroup, complete_files
from kafkascope.analyzer.commands.tables import TableFormat, print_table, table_options
from kafkascope.analyzer.reading.key_logs import FAILED, OPENED, connections_opened, kinds_of_lines
from kafkascope.analyzer.terminal import document, say
from kafkascope.extras import require

AGENT: Final = "extract-tls-secrets-4.0.0.jar"


class KeyLogMethod(NamedTuple):
    """How to obtain a key log from one kind of client."""

    name: str
    """The argument of `tls-keys`."""
    clients: str
    steps: tuple[str, ...]
    """Lines for the shell or the program, the shortest alternative first; # begins a remark."""
    works: str
    fails: str
    """Limits of the method, and similar settings that write no keys."""
    tested: str


METHODS: Final = (
    KeyLogMethod(
        "java",
        "Java: kafka-clients, and programs that use it",
        (
            "mvn dependency:copy -Dartifact=name.neykov:extract-tls-secrets:4.0.0"
            " -DoutputDirectory=.",
            f"JAVA_TOOL_OPTIONS=-javaagent:$PWD/{AGENT}=$PWD/keys.log java ...",
            f"java -jar {AGENT} PID $PWD/keys.log    # a running program",
        ),
        "TLS 1.3 and 1.2 (in 1.2 by session: `RSA Session-ID:`)",
        "connections older than the agent",
        "kafka-clients 2.4.1, 3.9.2 and 4.4.0 on Java 17",
    ),
    KeyLogMethod(
        "broker",
        "every client, at the broker",
        (
            f"java -jar {AGENT} PID $PWD/keys.log    # a running broker",
            f"JAVA_TOOL_OPTIONS=-javaagent:$PWD/{AGENT}=$PWD/keys.log"
            " bin/kafka-server-start.sh ...",
        ),
        "TLS 1.3 and 1.2, all clients of this broker; download the agent as for java",
        "connections older than the agent, and those to brokers without it."
        " Run `install -m 600 /dev/null keys.log` first, or others can read the file",
        "Kafka 4.4.0 on Java 17",
    ),
    KeyLogMethod(
        "librdkafka",
        "librdkafka: confluent-kafka for Python, Go, .NET and JavaScript, kcat",
        (
            "kafkascope tls-keys broker    # the same secrets, from the broker",
            "SSLKEYLOGFILE=$PWD/keys.log LD_PRELOAD=$PWD/keylog.so kcat ..."
            "    # keylog.c: docs/tls.md",
        ),
        "at the broker, always; with LD_PRELOAD if the program loads the system's libssl, like"
        " kcat of Linux distributions",
        "SSLKEYLOGFILE alone: the file stays empty. LD_PRELOAD with wheels of confluent-kafka,"
        " which bundle their own libssl",
        "confluent-kafka 2.16 from PyPI, kcat of Debian 12",
    ),
    KeyLogMethod(
        "python",
        "Python without librdkafka: aiokafka, kafka-python",
        (
            'ssl_context=ssl.create_default_context(cafile="ca.pem")    # in the program',
            "SSLKEYLOGFILE=$PWD/keys.log python app.py",
        ),
        "TLS 1.3 and 1.2; also with `create_ssl_context` of aiokafka",
        "kafka-python with `ssl_cafile=`: its own context writes no keys; pass `ssl_context=`",
        "aiokafka 0.14, kafka-python 3.0",
    ),
    KeyLogMethod(
        "go",
        "Go: franz-go, and others with a tls.Config",
        ("tls.Config{KeyLogWriter: file}    // in the program: os.OpenFile(..., 0o600)",),
        "TLS 1.3 and 1.2; resumed connections of 1.2 use the line of the first one",
        "no environment variable: the program must set it",
        "franz-go 1.22",
    ),
    KeyLogMethod(
        "node",
        "Node.js: kafkajs",
        ("NODE_OPTIONS=--tls-keylog=$PWD/keys.log node app.js",),
        "TLS 1.3 and 1.2",
        "packages based on librdkafka",
        "kafkajs 2.2 on Node 20",
    ),
    KeyLogMethod(
        "proxy",
        "every client whose bootstrap address can be changed",
        (
            "kafkascope proxy --upstream BROKER:9093 --upstream-tls --upstream-ca ca.pem --tls"
            " -w session.pcapng",
        ),
        "needs no key log: the proxy terminates TLS and records plaintext",
        "clients must trust the CA of the proxy (printed at the start); client certificates are not"
        " passed on to the broker",
        "kafka-clients, librdkafka, aiokafka, kafka-python, franz-go, kafkajs",
    ),
)
"""In the order of the documentation."""

WIDTH: Final = 80
SHOW: Final = "show"
"""The default command, which users do not type."""


@click.group("tls-keys", cls=CommandGroup, default=SHOW)
def tls_keys() -> None:
    """Show how to obtain TLS key logs.

    Key logs have the NSS format. CLIENT is java, broker, librdkafka, python, go, node, or proxy
    (default: all).

    \b
      kafkascope tls-keys librdkafka
      kafkascope tls-keys check keys.log my.pcap
      kafkascope ls my.pcap --keylog keys.log
    """


@tls_keys.command(SHOW, hidden=True)
@click.argument(
    "client",
    type=click.Choice([method.name for method in METHODS]),
    metavar="[CLIENT]",
    required=False,
)
def show(client: str | None) -> int:
    """Show how to obtain a key log."""
    methods = [method for method in METHODS if client in (None, method.name)]
    document("\n\n".join("\n".join(_lines(method)) for method in methods))
    return 0


def _lines(method: KeyLogMethod) -> list[str]:
    remarks = {"works": method.works, "does not work": method.fails, "tested": method.tested}
    wrapped = (
        fill(f"{head}: {text}", WIDTH, initial_indent="  ", subsequent_indent="    ")
        for head, text in remarks.items()
    )
    steps = (f"    {line}" for line in method.steps)
    return [f"{method.name}: {method.clients}", "", *steps, "", *wrapped]


@tls_keys.command("check")
@click.argument("path", metavar="FILE", shell_complete=complete_files)
@click.argument("captures", metavar="[CAPTURE...]", nargs=-1, shell_complete=complete_files)
@table_options
def check(path: str, captures: tuple[str, ...], how: TableFormat) -> int:
    """Check a key log: its lines, and what it decrypts.

    Exits with 1 if no line is usable, or if a TLS connection of the captures cannot be decrypted;
    `kafkascope connections CAPTURE --keylog FILE` says which one, and why.

    \b
      kafkascope tls-keys check keys.log
      kafkascope tls-keys check keys.log my.pcap
    """
    if captures:
        require("kafkascope tls-keys check FILE CAPTURE")
    try:
        kinds, usable = kinds_of_lines(Path(path))
    except OSError as error:
        say(f"{path}: {error.strerror}")
        return 3
    rows = [("lines", count, kind) for kind, count in kinds.most_common()]
    opened = connections_opened(captures, path) if captures else Counter[str]()
    rows += [("connections", count, what) for what, count in opened.most_common()]
    print_table(("subject", "count", "what"), rows, how)
    return 0 if usable and set(opened) <= {OPENED, FAILED} else 1
