"""Where a user's settings and state are kept: the places that XDG names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

NAME: Final = "kafkascope"


def config_home() -> Path:
    """The folder of what users write: settings, filters, colours."""
    return _home("XDG_CONFIG_HOME", ".config") / NAME


def state_home() -> Path:
    """The folder of what the program remembers."""
    return _home("XDG_STATE_HOME", ".local/state") / NAME


def cache_home() -> Path:
    """The folder of what can be had again."""
    return _home("XDG_CACHE_HOME", ".cache") / NAME


def _home(variable: str, usual: str) -> Path:
    given = os.environ.get(variable, "")
    # XDG: a relative path is to be ignored.
    return Path(given) if given and Path(given).is_absolute() else Path.home() / usual
