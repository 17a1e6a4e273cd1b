"""Where Wireshark looks for extcap programs, and putting one there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from kafkascope.bridges.wireshark.protocol import MARK

NAME: Final = "kafkascope"
# Below the home of a user: where Wireshark looks from 4.2 on.
PERSONAL: Final = Path(".local/lib/wireshark/extcap")
ASKING_S: Final = 30.0


class Folders(NamedTuple):
    """What the installed Wireshark says."""

    personal: Path | None
    """None: it has none."""
    shared: Path | None
    """The one of all users."""


def ask_tshark() -> Folders:
    """Ask `tshark -G folders`; nothing is known where there is none."""
    try:
        done = subprocess.run(
            ["tshark", "-G", "folders"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASKING_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Folders(None, None)
    return read_folders(os.fsdecode(done.stdout))


def read_folders(text: str) -> Folders:
    """Read what `tshark -G folders` prints. Before 4.2 there is one folder, for all users."""
    found = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    paths = {key.strip().lower(): value.strip() for key, value in found.items()}
    personal = paths.get("personal extcap path")
    shared = paths.get("global extcap path") or paths.get("extcap path")
    return Folders(Path(personal) if personal else None, Path(shared) if shared else None)


def default_folder() -> Path:
    """Return the default personal folder, for a Wireshark that cannot be queried."""
    return Path.home() / PERSONAL


def is_ours(path: Path) -> bool:
    """Whether a file is one that we wrote."""
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(4096)
    except OSError:
        return False


def put(folder: Path, text: str) -> Path:
    """Write the program into a folder; `FileExistsError` where another one has its name."""
    path = folder / NAME
    if (path.exists() or path.is_symlink()) and not is_ours(path):
        raise FileExistsError(17, "exists already and was not written by kafkascope", str(path))
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f".{NAME}-{os.getpid()}"
    try:
        new.write_text(text)
        new.chmod(0o755)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    return path


def take_away(folder: Path) -> Path | None:
    """Remove the program from a folder; None where it is not, or another one has its name."""
    path = folder / NAME
    if not is_ours(path):
        return None
    path.unlink()
    return path
