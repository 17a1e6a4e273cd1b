"""`kafkascope integrations mitmproxy`: where the add-on is."""

from __future__ import annotations

from pathlib import Path

from kafkascope.analyzer.commands.help import command
from kafkascope.analyzer.terminal import out


@command()
def mitmproxy() -> int:
    """Print the path of the mitmproxy add-on.

    It works with mitmproxy, mitmweb, and mitmdump.

    \b
      mitmdump -s "$(kafkascope integrations mitmproxy)" \\
        --mode reverse:tcp://broker:9092@9092
    """
    out(str(Path(__file__).with_name("script.py")))
    return 0
