"""`kafkascope integrations mcp`: captures for assistants, over the Model Context Protocol."""

from __future__ import annotations

import click

from kafkascope.analyzer.commands.options import KEYLOG, key_logs
from kafkascope.extras import require


@click.command()
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@click.option("-Y", "--filter", "filter_text", default="", metavar="FILTER", help="Only these.")
@KEYLOG
def mcp(inputs: tuple[str, ...], filter_text: str, keylog: tuple[str, ...]) -> int:
    """Serve captures to an assistant: a Model Context Protocol server on stdin and stdout.

    Its tools read these inputs and nothing else; secrets are masked, nothing is written or sent.

    \b
      claude mcp add kafka -- kafkascope integrations mcp /captures/prod.pcapng
      kafkascope integrations mcp captures/ --keylog keys.txt
    """
    if "-" in inputs:
        raise click.UsageError("stdin belongs to the protocol: give files or folders")
    require("kafkascope integrations mcp")
    from kafkascope.bridges.mcp.server import serve
    from kafkascope.library.capture import open as open_capture

    with open_capture(inputs, filter=filter_text, keylog=key_logs(keylog)) as capture:
        serve(capture)
    return 0
