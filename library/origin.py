"""What exchanges and records of one reading share: names, schemas, and whether secrets show."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kafkascope.library.errors import UsageError

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.reading.reading import Reading
    from kafkascope.analyzer.topics import TopicNames


class Origin:
    """One reading of a capture, as its exchanges and records need it."""

    def __init__(self, reading: Reading, *, secrets: bool) -> None:
        self._reading = reading
        self.secrets = secrets

    @property
    def names(self) -> TopicNames:
        """Names of topics that are known by now."""
        return self._reading.capture.context.names

    @cached_property
    def payloads(self) -> Payloads | None:
        """What decodes keys and values by their schemas."""
        return self._reading.payloads

    def demand_secrets(self, what: str) -> None:
        """Raise `UsageError` where secrets are not wanted."""
        if not self.secrets:
            raise UsageError(f"{what} may hold secrets: open the capture with secrets=True")
