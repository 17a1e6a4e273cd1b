"""Compiles the kernel: `python hatch_build.py` beside its sources, as `make setup` does, and
hatchling into a wheel, if KAFKASCOPE_COMPILE=1 is set; else the wheel is for every platform.

mypyc reads a program as mypy does, with all that it imports. The kernel imports nothing of ours, so
it is compiled in a folder that holds nothing but its modules below empty packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from runpy import run_path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT: Final = Path(__file__).parent
KERNEL: Final = ROOT / "kernel"
PACKAGE: Final = "kafkascope/kernel"
SWITCH: Final = "KAFKASCOPE_COMPILE"
REQUIRED: Final = ["mypy==2.4.1", "setuptools>=77"]
"""For a compiled wheel. The headers of librt that mypy carries have to be those of a release that
the wheel may meet: see the bounds of librt in pyproject.toml."""

# One group of modules, so that one calls the other without a table between them.
SETUP: Final = """\
import sys
from mypyc.build import mypycify
from setuptools import setup

paths = sys.argv[4:]
del sys.argv[4:]
group = [(paths, "kafkascope.kernel.native")]
modules = mypycify(paths, opt_level="3", debug_level="0", separate=group)
setup(name="kernel", packages=[], ext_modules=modules)
"""


class NotCompiled(Exception):
    """Why there is no compiled kernel."""


def compile_kernel(build: Path) -> list[Path]:
    """Compile the kernel below a folder that is empty; return the files that belong beside its
    sources. Raises NotCompiled."""
    ours = run_path(str(KERNEL / "compiled.py"))
    package = build / PACKAGE
    package.mkdir(parents=True)
    for each in (package, package.parent):
        (each / "__init__.py").touch()
    sources = []
    for name in ours["modules"](KERNEL):
        shutil.copy(KERNEL / f"{name}.py", package)
        sources.append(f"{PACKAGE}/{name}.py")
    setup = build / "setup.py"
    setup.write_text(SETUP, "utf-8")
    command = [sys.executable, setup.name, "-q", "build_ext", "--inplace", *sources]
    done = subprocess.run(
        command, cwd=build, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    made = sorted(package.glob(f"*{ours['SUFFIX']}"))
    if done.returncode or len(made) <= len(sources):
        lines = done.stdout.strip().splitlines()
        raise NotCompiled(lines[-1] if lines else f"exit code {done.returncode}")
    stamp = package / ours["STAMP"]
    stamp.write_text(ours["stamp"](package), "utf-8")
    return [*made, stamp]


class CustomBuildHook(BuildHookInterface[Any]):
    """Puts a compiled kernel into a wheel, where it is asked for."""

    @property
    def _wanted(self) -> bool:
        return self.target_name == "wheel" and os.environ.get(SWITCH, "") not in ("", "0")

    def dependencies(self) -> list[str]:
        """Return what the build needs beside hatchling."""
        return REQUIRED if self._wanted else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is written; the sources in it stay."""
        if not self._wanted or version == "editable":
            return
        self._build = tempfile.TemporaryDirectory()
        made = compile_kernel(Path(self._build.name))
        build_data["pure_python"], build_data["infer_tag"] = False, True
        build_data["force_include"] |= {str(each): f"{PACKAGE}/{each.name}" for each in made}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built on the way."""
        if not build_data["pure_python"]:
            self._build.cleanup()


def main() -> None:
    """Compile the kernel beside its sources, unless that is done, and say so."""
    ours = run_path(str(KERNEL / "compiled.py"))
    stamp = KERNEL / ours["STAMP"]
    if stamp.exists() and stamp.read_text("utf-8") == ours["stamp"](KERNEL):
        return
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as build:
        try:
            made = compile_kernel(Path(build))
        except NotCompiled as why:
            print(f"kernel: runs as plain Python, which is slower: {why}")
            return
        stamp.unlink(missing_ok=True)
        for each in made:
            # Replaced, not overwritten: programs that run have the old one mapped.
            new = KERNEL / f"{each.name}.new"
            shutil.copy(each, new)
            new.replace(KERNEL / each.name)
    print(f"kernel: compiled in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
