"""A spool that also writes what passes to a file: a capture that is watched is kept."""

from __future__ import annotations

from kafkascope.captures.inputs.private import PrivateFile
from kafkascope.captures.inputs.spool import DEFAULT_BYTES, Spool


class Tee(Spool):
    """Everything goes to `copy`, as it came; the last `capacity` bytes can be read again."""

    def __init__(
        self,
        copy: PrivateFile,
        capacity: int = DEFAULT_BYTES,
        directory: str | None = None,
        descriptor: int | None = None,
    ) -> None:
        """`copy` is unbuffered and stays the caller's: to publish, to close or to discard."""
        self._copy = copy.file
        super().__init__(capacity, directory, descriptor)

    def write(self, data: bytes | memoryview) -> int:
        """Keep and write `data`; its address."""
        view = memoryview(data)
        while view:
            view = view[self._copy.write(view) :]
        return super().write(data)
