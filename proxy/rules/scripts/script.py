"""A script file: its functions, loaded again when the file changes."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from kafkascope.captures.inputs.small import read_small

NAMES: Final = ("request", "response")


class ScriptError(Exception):
    """A script that cannot be loaded, or that failed: a sentence with its line."""


class Script:
    """A file with `request(frame)`, `response(frame)`, or both; `FILTER` narrows what they see."""

    def __init__(self, path: Path) -> None:
        """`ScriptError` when it cannot be loaded."""
        self.path = path
        self._changed_ns = 0
        self.edition = 0
        """Another number after each change."""
        self.functions: dict[str, Callable[[Any], None]] = {}
        self.filter = ""
        self.load()

    def load(self) -> bool:
        """Load the file if it changed since; return whether it did. `ScriptError`: it is wrong,
        and what was loaded before stays."""
        try:
            changed_ns = self.path.stat().st_mtime_ns
        except OSError as error:
            raise ScriptError(f"{self.path}: {error.strerror or error}") from None
        if changed_ns == self._changed_ns:
            return False
        self._changed_ns = changed_ns
        module = self._module()
        functions = {name: getattr(module, name) for name in NAMES if hasattr(module, name)}
        if not functions or not all(map(callable, functions.values())):
            raise ScriptError(f"{self.path}: it has neither request(frame) nor response(frame)")
        text = getattr(module, "FILTER", "")
        if not isinstance(text, str):
            raise ScriptError(f"{self.path}: FILTER is a text")
        self.functions, self.filter = functions, text
        self.edition += 1
        return True

    def _module(self) -> ModuleType:
        name = f"script_{self.path.stem}"
        # The loader is named: by itself it is found for names that end in .py only.
        loader = SourceFileLoader(name, str(self.path))
        spec = importlib.util.spec_from_file_location(name, self.path, loader=loader)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            # A cached module of the same second would be the old one.
            source = read_small(self.path)
            code = spec.loader.source_to_code(source, str(self.path))  # type: ignore[attr-defined]
            spec.loader.get_code = lambda _: code  # type: ignore[attr-defined]
            spec.loader.exec_module(module)
        except Exception as error:
            raise ScriptError(self.told(error)) from None
        finally:
            sys.dont_write_bytecode = before
        return module

    def told(self, error: BaseException) -> str:
        """Return an exception as a sentence with the script's line."""
        line = getattr(error, "lineno", None)
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == str(self.path):
                line = frame.lineno
        if isinstance(error, OSError) and error.filename == str(self.path):
            return f"{self.path}: {error.strerror}"
        where = f"{self.path}, line {line}" if line else str(self.path)
        return f"{where}: {type(error).__name__}: {error}"
