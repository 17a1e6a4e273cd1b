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
from tests.kit.samples import ROOT

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


def stand(folder: Path) -> Path:
    """A place where the user has folders that are named as our packages."""
    for name in ("kafkascope", "captures", "analyzer", "dissectors", "kernel", "schemas"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise SystemExit('a folder of the user')\n")
    return folder


def children(pid: int) -> list[int]:
    """Processes below a process: a JVM starts its own from any of its threads."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            continue
    return found + [each for child in found for each in children(child)]
