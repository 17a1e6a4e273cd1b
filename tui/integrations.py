"""`kafkascope integrations`: kafkascope inside other tools."""

from __future__ import annotations

from typing import Final

import click

from kafkascope.tui.lazy import Home, LazyGroup, Sections

SECTIONS: Final[Sections] = {
    "Integrations": {
        "mcp": Home(
            "kafkascope.bridges.mcp.command:mcp", "Serve captures to an AI assistant (MCP)"
        ),
        "wireshark": Home(
            "kafkascope.bridges.wireshark.cli:wireshark",
            "Install Wireshark capture interfaces (extcap)",
        ),
        "mitmproxy": Home(
            "kafkascope.bridges.mitmproxy.command:mitmproxy",
            "Print the path of the mitmproxy add-on",
        ),
    }
}


@click.group(cls=LazyGroup, sections=SECTIONS)
def integrations() -> None:
    """Set up Wireshark, mitmproxy, and AI assistants (MCP).

    \b
      kafkascope integrations wireshark install
      mitmproxy -s "$(kafkascope integrations mitmproxy)"
      claude mcp add kafka -- kafkascope integrations mcp /captures/prod.pcapng
    """
