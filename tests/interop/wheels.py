"""Wheels and source distributions."""

import sys
from pathlib import Path

from tests.interop.processes import run


def build(kind: str, source: Path, out: Path) -> Path:
    """The one file that hatchling makes of a source tree: `wheel` or `sdist`."""
    out.mkdir()
    command = ("-m", "hatchling", "build", "--target", kind, "--directory", out)
    run(sys.executable, *command, cwd=source)
    (made,) = out.iterdir()
    return made
