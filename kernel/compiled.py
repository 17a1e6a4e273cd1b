"""Chooses which kernel runs: the compiled modules, or the same source as plain Python.

A compiled kernel lies beside its sources, with a stamp of them. Without a stamp for this Python,
or with one of other sources, it does not run: a checkout that moved on would run yesterday's code.
Modification times would not do, for pip, git and `cp` each give new ones.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import source_hash
from pathlib import Path
from typing import Final

SWITCH: Final = "KAFKASCOPE_PURE"
"""Environment variable that forces plain Python; empty and 0 do not."""
SUFFIX: Final = EXTENSION_SUFFIXES[0] if EXTENSION_SUFFIXES else ""
"""Suffix of a compiled module of this Python on this platform."""
STAMP: Final = f"stamp{SUFFIX}.txt"
NOT_COMPILED: Final = "not compiled for this Python"
CHANGED: Final = "its source changed since it was compiled"


def modules(folder: Path) -> list[str]:
    """Return the names of the modules that are compiled, all or none: a native class of one does
    not take the plain class of another."""
    names = sorted(path.stem for path in folder.glob("*.py"))
    return [name for name in names if name not in ("__init__", "compiled")]


def stamp(folder: Path) -> str:
    sources = [(folder / f"{name}.py").read_bytes() for name in modules(folder)]
    return source_hash(b"\0".join(sources)).hex()


def reason_for_plain(folder: Path) -> str:
    """Return why the compiled kernel in a folder cannot run; "" if it can."""
    if os.environ.get(SWITCH, "") not in ("", "0"):
        return f"{SWITCH} is set"
    try:
        compiled = (folder / STAMP).read_text("utf-8")
        return "" if compiled == stamp(folder) else CHANGED
    except OSError:  # also in a zip, as Spark's workers have it
        return NOT_COMPILED


def choose(package: str, folders: list[str]) -> str:
    """Decide for a package with a `__path__`, before its modules are imported; return why it is
    plain Python, "" where it is compiled."""
    folder = Path(folders[0])
    reason = reason_for_plain(folder)
    if not reason:
        names = [f"{package}.{name}" for name in modules(folder)]
        try:
            for name in names:
                importlib.import_module(name)
            return ""
        except (ImportError, ValueError) as error:
            # librt is another release than the one that the kernel was compiled with, and says so
            # by either.
            reason = f"cannot be loaded: {error}"
            for name in names:
                sys.modules.pop(name, None)
    if folder.is_dir():
        # The folder's modules are found as anywhere, but no extension is.
        plain = (SourceFileLoader, SOURCE_SUFFIXES), (SourcelessFileLoader, BYTECODE_SUFFIXES)
        sys.path_importer_cache[folders[0]] = FileFinder(folders[0], *plain)
    return reason
