"""Wheels and source distributions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def build(kind: str, source: Path, out: Path) -> Path:
    """The one file that hatchling makes of a source tree: `wheel` or `sdist`."""
    out.mkdir()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(out)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (made,) = out.iterdir()
    return made
