"""Errors of the library itself; those of captures, messages, filters and proxies are below the same
root, `kafkascope.Error`."""

from __future__ import annotations

from kafkascope.errors import Error


class UsageError(Error):
    """The requested item does not exist, or is not available in this way."""


class NotStarted(Error):
    """A proxy or broker could not be started, or has ended."""
