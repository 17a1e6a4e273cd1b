"""`kafkascope integrations mitmproxy`: where the add-on is."""

from __future__ import annotations

from pathlib import Path

import click

from kafkascope.analyzer.terminal import out


@click.command()
def mitmproxy() -> int:
    """Print the path of the add-on for mitmproxy, mitmweb and mitmdump.

    \b
    Examples:
      mitmdump -s "$(kafkascope integrations mitmproxy)" --mode reverse:tcp://broker:9092@9092
    """
    out(str(Path(__file__).with_name("script.py")))
    return 0
