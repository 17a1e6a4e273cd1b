"""Names of files that are read whole, which must have an end."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final

import click

from kafkascope.captures.inputs.small import MOST_BYTES


class FilePath(click.Path):  # type: ignore[type-arg,unused-ignore]
    """A file: no device without an end, as `/dev/zero` is. OpenSSL, which reads certificates, and
    others look for the end of a line as long as there are bytes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check it."""
        path = super().convert(value, param, ctx)
        try:
            status = os.stat(path)  # noqa: PTH116 - it may be of any type
        except OSError:
            return path  # whoever reads it says why that fails
        if stat.S_ISCHR(status.st_mode) and not os.path.samefile(path, os.devnull):  # noqa: PTH121
            self.fail(f'"{value}" is a device, not a file', param, ctx)
        if status.st_size > MOST_BYTES:
            self.fail(f'"{value}" is larger than {MOST_BYTES >> 20} MB', param, ctx)
        return path


FILE: Final = FilePath(path_type=Path, exists=True, dir_okay=False)
