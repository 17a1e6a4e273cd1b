"""Cache of registries' responses: a folder for each registry, a file for each schema. I/O."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson

from kafkascope.analyzer.payloads.limits import LIMITS
from kafkascope.analyzer.places import cache_home
from kafkascope.captures.inputs.private import PrivateFile


class RegistryCache:
    """The cache of one registry; empty where its folder is not our own."""

    def __init__(
        self, url: str, folder: Path | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """`folder`: in place of the user's."""
        name = hashlib.sha256(url.encode()).hexdigest()[:32]
        self.path: Final = (folder or cache_home()) / "registries" / name
        self._clock: Final = clock
        self._usable: bool | None = None

    def get(self, name: str) -> Any:
        """Return the value of a name; None where there is none, or it expired."""
        try:
            with self._file(name).open("rb") as file:
                data = file.read(LIMITS.index_bytes + 1)
            kept = orjson.loads(data)
            age = self._clock() - kept["time"]
            limit = LIMITS.missing_seconds if kept["value"] is False else LIMITS.found_seconds
            return kept["value"] if 0 <= age < limit else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, name: str, value: Any) -> None:
        """Keep a schema; False is one that was not found."""
        if self._usable is None:
            self._usable = self._made()
        if self._usable:
            try:
                with PrivateFile(self._file(name)) as file:
                    kept = {"time": self._clock(), "value": value}
                    file.write(orjson.dumps(kept, default=list))
            except OSError:
                self._usable = False  # a full disk, say: it is a cache

    def _file(self, name: str) -> Path:
        # Names come from traffic.
        return self.path / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"

    def _made(self) -> bool:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.path.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
