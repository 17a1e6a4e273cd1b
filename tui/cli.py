"""The `kafkascope` command: a lazy click group over all packages' commands.

Listing and help import no command: `COMMANDS` holds names, homes and short helps as text. The one
place that turns exceptions into sentences on stderr and exit codes:

    0 done   1 check found something   2 usage or filter   3 input missing or no capture
    4 damaged or cut, results are partial   5 not allowed, or an extra is missing
    130 ctrl+c   141 closed pipe
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

if TYPE_CHECKING:
    from kafkascope.analyzer.reading.options import SchemaOptions


class Home(NamedTuple):
    """A command, not imported yet."""

    place: str
    """module:attribute"""
    help: str
    """One line."""


COMMANDS: Final[dict[str, Home]] = {
    "open": Home("kafkascope.tui.open:open_", "Look at captures in the terminal."),
    "capture": Home("kafkascope.analyzer.commands.capture:capture", "Capture packets into a file."),
    "ls": Home("kafkascope.analyzer.commands.ls:ls", "One line per exchange."),
    "show": Home(
        "kafkascope.analyzer.commands.show:show", "Decode exchanges: tree, bytes, JSON, packets."
    ),
    "records": Home("kafkascope.analyzer.commands.records:records", "One line per record."),
    "check": Home(
        "kafkascope.analyzer.commands.check:check", "Findings, worst first; exit code for CI."
    ),
    "clients": Home(
        "kafkascope.analyzer.commands.clients:clients", "Who, library, versions, what breaks."
    ),
    "groups": Home(
        "kafkascope.analyzer.commands.groups:groups", "Groups: rebalances, why, members, timeline."
    ),
    "delivery": Home(
        "kafkascope.analyzer.commands.delivery:delivery",
        "Groups: lag, records skipped or read again.",
    ),
    "cluster": Home(
        "kafkascope.analyzer.commands.cluster:cluster", "Nodes, leaders, coordinators as told."
    ),
    "producers": Home(
        "kafkascope.analyzer.commands.producers:producers", "Sequences and transactions."
    ),
    "schemas": Home(
        "kafkascope.analyzer.commands.schemas:schemas",
        "Schemas of keys and values: known, used, missing.",
    ),
    "stats": Home(
        "kafkascope.analyzer.commands.stats:stats", "Tables: latency, errors, topics, sizes, ..."
    ),
    "report": Home(
        "kafkascope.analyzer.commands.report:report", "One HTML or Markdown file about a capture."
    ),
    "export": Home(
        "kafkascope.analyzer.commands.export:export", "Write exchanges or records to a file."
    ),
    "diff": Home(
        "kafkascope.analyzer.commands.diff:diff", "Two exchanges, or two captures API by API."
    ),
    "fixture": Home(
        "kafkascope.analyzer.commands.fixture:fixture", "Messages as files for interop tests."
    ),
    "cut": Home(
        "kafkascope.analyzer.commands.cut:cut", "Part of a capture as a capture; --anonymize."
    ),
    "spark": Home(
        "kafkascope.analyzer.commands.spark:spark", "Captures of any size to Parquet tables."
    ),
    "grammar": Home("kafkascope.analyzer.commands.grammar:grammar", "The layout of a message."),
    "decode": Home("kafkascope.analyzer.commands.codec:decode", "Bytes of a message to JSON."),
    "encode": Home("kafkascope.analyzer.commands.codec:encode", "JSON of a message to bytes."),
    "fields": Home(
        "kafkascope.analyzer.commands.fields:fields", "Filter fields: type, cost, example."
    ),
    "errors": Home("kafkascope.analyzer.commands.errors:errors", "Error codes and what they mean."),
    "keys": Home("kafkascope.analyzer.commands.keys:keys", "How to get a key log, to read TLS."),
    "proxy": Home(
        "kafkascope.proxy.cli:proxy", "Stand between clients and brokers: watch, record, tamper."
    ),
    "replay": Home(
        "kafkascope.proxy.replay.cli:replay", "Send a capture's requests again, compare answers."
    ),
    "serve": Home("kafkascope.proxy.serve.cli:serve", "A capture as a broker for real clients."),
    "mcp": Home("kafkascope.bridges.mcp.command:mcp", "Captures for assistants (MCP, on stdio)."),
    "wireshark": Home(
        "kafkascope.bridges.wireshark.cli:wireshark", "Kafka's proxy as an interface of Wireshark."
    ),
    "mitmproxy": Home(
        "kafkascope.bridges.mitmproxy.command:mitmproxy", "Path of the add-on for mitmproxy (-s)."
    ),
    "faults": Home("kafkascope.proxy.cli:faults", "What `proxy --fault` can do."),
    "demo": Home(
        "kafkascope.tui.guide.demo:demo", "A minute of Kafka with eight troubles in it; --tour."
    ),
    "doctor": Home(
        "kafkascope.analyzer.commands.doctor:doctor", "What this machine lacks for what."
    ),
    "completion": Home("kafkascope.analyzer.commands.completion:completion", "Shell completion."),
}

CLOSED_PIPE: Final = 141
INTERRUPTED: Final = 130


class ClosedPipe(Exception):
    """The reader of our output has gone; click would print an error."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command's module."""
        home = COMMANDS.get(name)
        if home is None:
            return None
        module, _, attribute = home.place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, home.help) for name, home in COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`kafkascope FILE` opens the file on a terminal, and lists it elsewhere."""
        if args and not any(arg in ctx.help_option_names or arg == "--version" for arg in args[:1]):
            first = args[0]
            if first not in COMMANDS and (first.startswith("-") or _is_input(first)):
                args = ["open" if to_look_at(args) else "ls", *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; the error for an unknown one suggests the nearest name."""
        name = args[0]
        if name not in COMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, n=1)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            ctx.fail(f'there is no command and no file "{name}"{hint}')
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and flush what it printed."""
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
        """Run a command line and exit with its code."""
        _collect_rarely()
        # Commands see whether this process is the program's own: see `options.spare_pandas`.
        extra.setdefault("obj", args is None)
        code = _run(self, args, prog_name or "kafkascope", complete_var, extra)
        if code == CLOSED_PIPE:
            _silence()
        sys.exit(code)


def _collect_rarely() -> None:
    """Collect garbage rarely, from before any command is imported, and not at exit: the memory goes
    with the process."""
    gc.set_threshold(GC_THRESHOLD, 8, 20)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def _run(
    group: LazyGroup,
    args: Sequence[str] | None,
    prog_name: str,
    complete_var: str | None,
    extra: dict[str, Any],
) -> int:
    try:
        result = super(LazyGroup, group).main(
            args, prog_name, complete_var, standalone_mode=False, **extra
        )
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
        code = _explained(error)
        if code is None:
            raise
        return code
    return code_of(result)


def code_of(result: Any) -> int:
    """Return the exit code of a command from what it returned."""
    return result if isinstance(result, int) else 0


def _explained(error: BaseException) -> int | None:
    """Print what users can do about an error; return its exit code, None if it is a bug of ours."""
    from kafkascope.analyzer.commands.failures import explain
    from kafkascope.analyzer.terminal import say

    found = explain(error)
    if found is None:
        return None
    say(found.text, bare=True)
    return found.code


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


GC_THRESHOLD: Final = 200_000
"""New objects after which garbage is collected: more than `check` makes until it reads. Messages
make hardly any cycles; the default, 700, costs a tenth of the time and more."""

LOOKING: Final = frozenset({"-Y", "--filter", "-d", "-t", "--plain", "--legs"})
"""Options that the UI has as well as commands that print."""
BROWSER: Final = frozenset({"--web", "--web-port"})
"""Options that only the UI has."""


def to_look_at(args: list[str]) -> bool:
    """Return whether inputs without a command are for the terminal UI: there is a terminal, a
    library for it, and no option asks for output."""
    if args[0].startswith("-") and args[0] != "-":
        return False
    options = {arg.partition("=")[0] for arg in args if arg.startswith("-") and arg != "-"}
    if options & BROWSER:
        return True
    if not options <= LOOKING or os.environ.get("TERM", "") in ("", "dumb"):
        return False
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return False
    from importlib.util import find_spec

    return find_spec("textual") is not None


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="kafkascope", message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """See what Kafka clients and brokers say to each other.

    INPUT is a pcap or pcapng file (also .gz, .zst, .xz, .bz2), several, a folder, or - for stdin.

    \b
      kafkascope capture.pcapng                                 look at its exchanges
      kafkascope ls capture.pcapng -Y 'latency > 500ms and not wait'
      kafkascope show capture.pcapng 1206 --hex
      tcpdump -U -w - port 9092 | kafkascope ls -
    """
    context.meta["open_proxy"] = _open_proxy


def _open_proxy(path: Path, schemas: SchemaOptions) -> int:
    """Show the proxy, for `proxy --open`."""
    from kafkascope.tui.process.attach import open_proxy

    return open_proxy(path, schemas)


if __name__ == "__main__":
    main()
