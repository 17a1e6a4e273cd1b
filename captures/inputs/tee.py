"""A spool that also writes all bytes to a file, to keep a capture that is watched."""

from __future__ import annotations

from kafkascope.captures.inputs.private import PrivateFile
from kafkascope.captures.inputs.spool import DEFAULT_BYTES, Spool


class Tee(Spool):
    """Writes all bytes to `copy`; the last `capacity` ones can be read again."""

    def __init__(
        self,
        copy: PrivateFile,
        capacity: int = DEFAULT_BYTES,
        descriptor: int | None = None,
    ) -> None:
        """`copy` is unbuffered; the caller publishes, closes or discards it."""
        self._copy = copy.file
        super().__init__(capacity, descriptor=descriptor)

    def write(self, data: bytes | memoryview) -> int:
        """Keep and write `data`; return its address."""
        view = memoryview(data)
        while view:
            view = view[self._copy.write(view) :]
        return super().write(data)
