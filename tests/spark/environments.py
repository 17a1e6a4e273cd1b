"""Python environments of their own, for what does not live beside mitmproxy: made once, kept in
.cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.needs import CI

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".cache" / "environments"


def environment(name: str, *requirements: str) -> Path:
    """The Python of an environment with these packages."""
    sign = hashlib.sha256(repr((sys.version_info[:2], requirements)).encode()).hexdigest()[:8]
    folder = PLACE / f"{name}-{sign}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*install, *requirements], capture_output=True, text=True)
        if done.returncode:
            reason = f"no environment with {', '.join(requirements)}: {done.stderr[-500:]}"
            (pytest.fail if CI else pytest.skip)(reason)
        (folder / "ready").touch()
    return python
