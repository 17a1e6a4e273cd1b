"""The `kafkascope` command: a lazy click group over all packages' commands.

Listing and help import no command: names, homes and short helps are text. The one place that turns
exceptions into sentences on stderr and exit codes:

    0 done   1 check found something   2 usage or filter   3 input missing or no capture
    4 damaged or cut, results are partial   5 not allowed, or an extra is missing
    130 ctrl+c   141 closed pipe
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from kafkascope.errors import CLOSED_PIPE, INTERRUPTED
from kafkascope.tui.lazy import LazyGroup, Sections

if TYPE_CHECKING:
    from kafkascope.analyzer.reading.options import SchemaOptions


SECTIONS: Final[Sections] = {
    "Look": {
        "open": "Browse a capture in the terminal UI",
        "ls": "List requests with their responses, one per line",
        "show": "Decode requests and responses field by field",
        "records": "List records with their keys and values",
        "check": "Find problems, most severe first; exit 1 for CI",
        "report": "Write an HTML or Markdown report of a capture",
    },
    "Ask": {
        "clients": "List clients, their libraries, and upgrade risks",
        "groups": "Show consumer groups, rebalances, and their causes",
        "cluster": "Show brokers, leaders, coordinators as advertised",
        "producers": "Show producer sequences, duplicates, and transactions",
        "schemas": "List record schemas: used, known, and missing",
        "map": "Show applications and the topics between them",
        "journey": "Show where a record went, from producer to readers",
        "topics": "Show traffic by topic, with producers and consumers",
        "latency": "Measure latency by API, long-poll waits excluded",
        "errors": "Count unexpected errors by API, client, and topic",
        "connections": "List TCP connections: lifetime, TLS, retransmissions",
        "stats": "Print any statistics table: apis, sizes, rates, and more",
    },
    "Live": {
        "capture": "Record packets of an interface to a file",
        "proxy": "Watch, record, and disturb traffic as a Kafka proxy",
    },
    "Share": {
        "cut": "Extract or anonymize part of a capture",
        "export": "Write exchanges or records to JSONL, CSV, or Parquet",
        "diff": "Compare two captures, or two exchanges",
        "spark": "Convert captures to Parquet tables",
    },
    "Test": {
        "serve": "Run a mock broker from a capture",
        "replay": "Resend captured requests and compare the responses",
        "fixture": "Write messages as test fixtures for any language",
    },
    "Protocol": {
        "grammar": "Print the layout of a message in any version",
        "decode": "Decode the bytes of a message to JSON",
        "encode": "Encode a message from JSON to bytes",
        "fields": "List display-filter fields, with types and examples",
        "error": "Explain an error code and its usual causes",
    },
    "Set up": {
        "demo": "Explore a built-in sample capture",
        "doctor": "Check dependencies and permissions",
        "tls-keys": "Show how to obtain TLS key logs",
        "completion": "Print the completion script of a shell",
        "integrations": "Set up Wireshark, mitmproxy, and AI assistants (MCP)",
    },
}
HOMES: Final = {
    "open": "tui.open:open_",
    **dict.fromkeys(
        ("producers", "topics", "latency", "errors", "connections"), "analyzer.commands.stats"
    ),
    "proxy": "proxy.cli",
    "serve": "proxy.serve.cli",
    "replay": "proxy.replay.cli",
    **dict.fromkeys(("decode", "encode"), "analyzer.commands.codec"),
    **dict.fromkeys(("fields", "error"), "analyzer.commands.reference"),
    "demo": "tui.guide.demo",
    "integrations": "tui.cli",
}
"""Homes of commands that have no module of their name in `analyzer.commands`, as `LazyGroup` wants
them."""
COMMANDS: Final = frozenset(name for helps in SECTIONS.values() for name in helps)

INTEGRATIONS: Final[Sections] = {
    "Integrations": {
        "mcp": "Serve captures to an AI assistant (MCP)",
        "wireshark": "Install Wireshark capture interfaces (extcap)",
        "mitmproxy": "Print the path of the mitmproxy add-on",
    }
}
INTEGRATION_HOMES: Final = {
    "mcp": "bridges.mcp.command",
    "wireshark": "bridges.wireshark.cli",
    "mitmproxy": "bridges.mitmproxy.command",
}


class ClosedPipe(Exception):
    """The reader of our output has gone; click would print an error."""


class MainGroup(LazyGroup):
    """The `kafkascope` command: opens or lists a file without a command, and turns errors into exit
    codes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`kafkascope FILE` opens the file on a terminal, and lists it elsewhere; `kafkascope -i
        IFACE` captures and opens the UI."""
        if args and not any(arg in ctx.help_option_names or arg == "--version" for arg in args[:1]):
            first = args[0]
            if first not in COMMANDS and (first.startswith("-") or _is_input(first)):
                args = ["open" if to_look_at(args) else "ls", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin so, or let the shell name files: one is opened."""
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, "file")]

    def unknown(self, name: str) -> str:
        return f'there is no command and no file "{name}"'

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise ClosedPipe from None
        return result

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if sys.stdin is None or sys.stdout is None or sys.stderr is None:
            from kafkascope.analyzer.terminal import open_standard_streams

            open_standard_streams()
        _collect_rarely()
        # Nothing of ours multiplies matrices, but numpy's BLAS starts a thread for each core, which
        # takes 50 ms of CPU. Who set the variable knows why.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # Commands see whether this process is the program's own: see `options.spare_pandas`.
        extra = {"obj": args is None, **extra, "standalone_mode": False}
        code = self._run(args, prog_name or "kafkascope", complete_var, **extra)
        if code == CLOSED_PIPE:
            _silence()
        sys.exit(code)

    def _run(self, *words: Any, **extra: Any) -> int:
        try:
            return code_of(super().main(*words, **extra))
        except ClosedPipe:
            return CLOSED_PIPE
        except click.ClickException as error:
            from kafkascope.analyzer.terminal import usage

            usage(error)
            return error.exit_code
        except (click.Abort, KeyboardInterrupt):
            return INTERRUPTED
        except SystemExit as error:
            return code_of(error.code)
        except Exception as error:
            from kafkascope.analyzer.commands.failures import explain
            from kafkascope.analyzer.terminal import say

            if (found := explain(error)) is None:  # a bug of ours
                raise
            say(found.text, bare=True)
            return found.code


def _collect_rarely() -> None:
    """Collect garbage rarely, from before any command is imported, and not at exit: the memory goes
    with the process."""
    gc.set_threshold(GC_THRESHOLD, 8, 20)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def code_of(result: Any) -> int:
    return result if isinstance(result, int) else 0


def _silence() -> None:
    # The interpreter flushes stdout once more at exit; nobody reads it any longer.
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass


def _is_input(text: str) -> bool:
    """Return whether a first word that is no command names a capture."""
    return text == "-" or "/" in text or "." in text or Path(text).exists()


# New objects after which garbage is collected: more than `check` makes until it reads. Messages
# make hardly any cycles; the default, 700, costs a tenth of the time and more.
GC_THRESHOLD: Final = 200_000

LOOKING: Final = frozenset(
    {
        *("-Y", "--filter", "-d", "-t", "--plain", "--color", "--legs", "--keylog", "--time-zone"),
        *("--schemas", "--schema", "--registry", "--registry-ca", "--no-schemas"),
        *("-q", "--quiet", "-v", "--verbose", "--no-progress"),
    }
)
"""Options that the UI has as well as commands that print."""
OPENING: Final = frozenset({"-i", "--attach", "--web", "--web-port"})
"""Options that only the UI has."""


def to_look_at(args: list[str]) -> bool:
    """Return whether inputs without a command are for the terminal UI: there is a terminal,
    and no option asks for output."""
    options = {arg.partition("=")[0] for arg in args if arg.startswith("-") and arg != "-"}
    if options & OPENING or any(option.startswith("-i") for option in options):
        return True
    if args[0].startswith("-") and args[0] != "-":
        return False
    if not options <= LOOKING or os.environ.get("TERM", "") in ("", "dumb"):
        return False
    return sys.stdout.isatty() and sys.stderr.isatty()


@click.group(
    cls=MainGroup,
    sections=SECTIONS,
    homes=HOMES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(
    package_name="kafkascope",
    message="%(prog)s %(version)s",
    help="Show the version and exit",
)
@click.pass_context
def main(context: click.Context) -> None:
    """Analyze Kafka traffic of captures, interfaces, or a proxy.

    INPUT is a pcap or pcapng file (also .gz, .zst, .xz, .bz2), several, a folder, or - for stdin.

    \b
      kafkascope capture.pcapng                   # open the terminal UI
      kafkascope -i eth0 -f 'port 9092'           # live
      kafkascope check capture.pcapng             # what is wrong?
      kafkascope ls capture.pcapng -Y 'latency > 500ms and not wait'
      tcpdump -U -w - port 9092 | kafkascope ls -

    `kafkascope COMMAND --help` explains a command.
    """
    context.meta["open_proxy"] = _open_proxy


def _open_proxy(path: Path, schemas: SchemaOptions, filter_text: str) -> int:
    """Show the proxy, for `proxy --open`."""
    from kafkascope.tui.process.attach import open_proxy

    return open_proxy(path, schemas, filter_text)


@click.group(cls=LazyGroup, sections=INTEGRATIONS, homes=INTEGRATION_HOMES)
def integrations() -> None:
    """Set up Wireshark, mitmproxy, and AI assistants (MCP).

    \b
      kafkascope integrations wireshark install
      mitmproxy -s "$(kafkascope integrations mitmproxy)"
      claude mcp add kafka -- kafkascope integrations mcp /captures/prod.pcapng
    """


if __name__ == "__main__":
    main()
