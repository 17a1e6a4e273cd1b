"""A spool that also writes what passes to a file: a capture that is watched is kept."""

from __future__ import annotations

from pathlib import Path

from captures.spool import DEFAULT_BYTES, Spool


class Tee(Spool):
    """Everything goes to `path`, as it came; the last `capacity` bytes can be read again."""

    def __init__(
        self,
        path: str,
        capacity: int = DEFAULT_BYTES,
        directory: str | None = None,
        descriptor: int | None = None,
    ) -> None:
        """OSError when the file cannot be written."""
        self._copy = Path(path).open("wb", buffering=0)  # noqa: SIM115
        super().__init__(capacity, directory, descriptor)

    def write(self, data: bytes | memoryview) -> int:
        """Keep and write `data`; its address."""
        view = memoryview(data)
        while view:
            view = view[self._copy.write(view) :]
        return super().write(data)

    def close(self) -> None:
        """Close both."""
        self._copy.close()
        super().close()
