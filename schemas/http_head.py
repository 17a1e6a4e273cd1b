"""The head of an HTTP message. It is apart from the model: connections are read without schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class HttpHead(NamedTuple):
    """The start line and headers of an HTTP message."""

    method: str
    """Method of a request; empty for a response."""
    target: str
    """Path and query of a request, as sent."""
    status: int
    """Status of a response; 0 for a request."""
    headers: Mapping[str, str]
    """By names in lower case; of equal names the values with commas between."""
