"""`kafkascope integrations mcp`: captures for assistants, over the Model Context Protocol."""

from __future__ import annotations

import click

from kafkascope.analyzer.commands.help import command, complete_files, setting
from kafkascope.analyzer.commands.options import key_logs, keylog_option
from kafkascope.extras import require


@command()
@click.argument(
    "inputs", metavar="INPUT...", nargs=-1, required=True, shell_complete=complete_files
)
@setting("-Y --filter filter_text", "FILTER", "Serve only matching exchanges", default="")
@keylog_option()
def mcp(inputs: tuple[str, ...], filter_text: str, keylog: tuple[str, ...]) -> int:
    """Serve captures to an AI assistant (MCP).

    Runs a Model Context Protocol server on stdin and stdout. Its tools read only these inputs,
    mask secrets, and neither write nor send anything.

    \b
      claude mcp add kafka -- kafkascope integrations mcp /captures/prod.pcapng
      kafkascope integrations mcp captures/ --keylog keys.txt
    """
    if "-" in inputs:
        raise click.UsageError(
            "- is not possible, stdin carries the protocol: name files or folders"
        )
    require("kafkascope integrations mcp")
    from kafkascope.bridges.mcp.server import serve
    from kafkascope.library.capture import open as open_capture

    with open_capture(inputs, filter=filter_text, keylog=key_logs(keylog)) as capture:
        serve(capture)
    return 0
