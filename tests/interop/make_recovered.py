"""Makes `tests/analyzer/logdir/recovered.tar.xz` again: damaged folders of brokers of several
releases, and what these left of them. `python -m tests.interop.make_recovered FOLDER`, an empty one
to work in.
"""

import io
import json
import lzma
import sys
import tarfile
from pathlib import Path
from typing import Any

from tests.interop.at_rest import RELEASES, recovered, written
from tests.interop.damages import chance, damaged
from tests.kit.samples import ROOT

CHOSEN = ("0.8.0", "0.9.0.1", "1.1.1", "3.9.2", "4.4.0")
TOPICS = ("c-none", "c-gzip")
BY_CHANCE = 12
SUFFIXES = (".log", ".index", ".timeindex")
TARGET = ROOT / "tests" / "analyzer" / "logdir" / "recovered.tar.xz"
SAME = 64 << 20
"""How far back the compression looks: folders are copies of each other."""


def main(home: Path) -> None:
    """Make the archive."""
    packed = io.BytesIO()
    truth: dict[str, dict[str, Any]] = {}
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for version in CHOSEN:
            folders = _folders(version, home / version)
            theirs = recovered(RELEASES[version], folders, home / version / "recovery")
            truth[version] = {
                name: each.files if each.started else None for name, each in theirs.items()
            }
            for name, folder in sorted(folders.items()):
                for path in sorted(folder.iterdir()):
                    if path.suffix in SUFFIXES or path.name == "leader-epoch-checkpoint":
                        _put(tar, f"{version}/{name}/{path.name}", path.read_bytes())
        _put(tar, "truth.json", json.dumps(truth, indent=0).encode())
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": SAME}]
    TARGET.write_bytes(lzma.compress(packed.getvalue(), filters=filters))


def _folders(version: str, home: Path) -> dict[str, Path]:
    found = {}
    made = written(RELEASES[version], home)
    for topic in TOPICS:
        folder = made.clean[topic]
        found[folder.name] = folder
        found |= {copy.name: copy for _, copy in damaged(folder, home / "bad")}
        found |= {copy.name: copy for _, copy in chance(folder, home / "bad", 7, BY_CHANCE)}
    return found


def _put(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
