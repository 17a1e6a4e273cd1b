"""Errors of decoding, as one tree.

DissectError(reason, offset, path)
├── Truncated        the bytes end inside a value
├── Malformed        a value that the protocol does not allow
├── BadChecksum      a record batch whose CRC does not fit its bytes
├── TooLarge         more than we are willing to hold or expand
├── UnknownApi       no such api key, or no declaration of it
└── UnknownVersion   an api version that no release has had

SchemaError          a declaration that contradicts itself: our own mistake, raised at import
"""

from kafkascope.errors import Error


class DissectError(Error):
    """Bytes cannot be decoded; `str()` gives one line for people."""

    word = "malformed"
    """The reason as one word, for JSON and filters."""

    def __init__(self, reason: str, *, offset: int = 0, path: str = "") -> None:
        super().__init__(reason, offset, path)
        self.reason = reason
        self.offset = offset
        """Bytes from the start of the buffer to the value that could not be read."""
        self.path = path
        """Dotted path of that value, such as `topics[0].partitions`; empty when unknown."""

    def __str__(self) -> str:
        return f"{self.path or 'message'} at byte {self.offset}: {self.reason}"


class Truncated(DissectError):
    """The bytes end inside a value."""

    word = "truncated"


class Malformed(DissectError):
    """A value that the protocol does not allow."""


class BadChecksum(DissectError):
    """A record batch or message whose CRC does not fit its bytes."""

    word = "bad-checksum"


class TooLarge(DissectError):
    """More than we are willing to hold or expand."""

    word = "too-large"


class UnknownApi(DissectError):
    """No such api key, or an api that is not declared."""

    word = "unknown-api"


class UnknownVersion(DissectError):
    """An api version that no release has had."""

    word = "unknown-version"


class SchemaError(Exception):
    """A declaration that contradicts itself."""
