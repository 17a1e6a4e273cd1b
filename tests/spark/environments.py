"""Python environments of their own, for what does not live beside mitmproxy: made once, kept in
.cache."""

import hashlib
import sys
from pathlib import Path

from tests.interop.maven import CACHE, once
from tests.interop.needs import absent
from tests.interop.processes import run


def environment(name: str, *requirements: str) -> Path:
    """The Python of an environment with these packages."""
    sign = hashlib.sha256(repr((sys.version_info[:2], requirements)).encode()).hexdigest()[:8]
    folder = CACHE / "environments" / f"{name}-{sign}"
    python = folder / "bin" / "python"

    def install() -> None:
        run(sys.executable, "-m", "venv", "--clear", folder)
        try:
            run(python, "-m", "pip", "install", "--quiet", *requirements)
        except RuntimeError as error:
            absent(f"no environment with {', '.join(requirements)}: {str(error)[-500:]}")

    once(folder, install)
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
