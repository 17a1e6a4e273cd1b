"""The content view of Kafka, for mitmproxy 11 and 12.

Both ask by attributes, so one class is both: 11 calls it and wants lines of styled words, 12 calls
`prettify` and wants a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kafkascope.bridges.mitmproxy.flows import KafkaFlow

# Above the views for any bytes.
PRIORITY = 2.0
HELD = "The rest of a message arrives with a later part, which shows the whole message."


class KafkaView:
    """Shows the messages of Kafka that end in a part of a TCP flow."""

    name = "Kafka"
    syntax_highlight = "yaml"

    def __init__(self, known: Callable[[Any], KafkaFlow | None]) -> None:
        """`known`: what the parts of a flow say."""
        self._known = known

    def __lt__(self, other: Any) -> bool:
        return bool(self.name < other.name)

    # --- mitmproxy 11

    def __call__(self, data: bytes, **known: Any) -> tuple[str, Iterator[list[tuple[str, str]]]]:
        """Return a title and the lines."""
        text = self._text(known.get("flow"), known.get("tcp_message"))
        return "Kafka", ([("text", line)] for line in text.split("\n"))

    def render_priority(self, data: bytes, metadata: Any = None, **known: Any) -> float:
        """Say whether this is the view for a part."""
        flow, part = known.get("flow"), known.get("tcp_message")
        if metadata is not None:
            flow, part = metadata.flow, metadata.tcp_message
        found = None if part is None else self._known(flow)
        return PRIORITY if found is not None and found.is_kafka else -1.0

    # --- mitmproxy 12

    def prettify(self, data: bytes, metadata: Any) -> str:
        """Return the text."""
        return self._text(metadata.flow, metadata.tcp_message)

    def _text(self, flow: Any, part: Any) -> str:
        found = None if flow is None or part is None else self._known(flow)
        if found is None:
            raise ValueError("not part of a TCP flow")
        at = next((n for n, each in enumerate(flow.messages) if each is part), -1)
        return "\n".join(found.lines(at)) if found.has(at) else HELD
