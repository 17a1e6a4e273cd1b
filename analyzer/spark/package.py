"""The packages as one zip for `--py-files`, and the program for `spark-submit`: `python -m
kafkascope.analyzer.spark.package DIST`."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Final

from kafkascope.analyzer.terminal import out

ZIP: Final = "kafkascope-spark.zip"
PROGRAM: Final = "kafkascope-job.py"
PACKAGES: Final = ("analyzer", "bridges", "captures", "dissectors", "kernel", "schemas")
"""Packages that a job imports, in the driver and in workers: below `kafkascope`. Of the bridges
it is the data source."""
FIXED: Final = (1980, 1, 1, 0, 0, 0)
"""Fixed timestamp, so that equal code gives an equal file."""

MAIN: Final = '''\
"""`kafkascope spark` for spark-submit: takes the same INPUT... and options."""

from kafkascope.analyzer.commands.spark_job import main

main()
'''


def write_zip(path: Path) -> Path:
    """Write the packages that are imported here as a zip."""
    import kafkascope

    home = Path(kafkascope.__file__).parents[1]
    if home.is_file():
        # The code runs from such a file already.
        path.write_bytes(home.read_bytes())
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        ours = home / "kafkascope"
        sources = sorted(ours.glob("*.py"))
        for package in PACKAGES:
            # One by one: rglob follows no symlinks below its start, and a checkout has some.
            sources += sorted((ours / package).rglob("*.py"))
            sources += sorted((ours / package).rglob("*.json"))
        for source in sources:
            about = zipfile.ZipInfo(str(source.relative_to(home)), FIXED)
            about.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(about, source.read_bytes())
    return path


def write_package(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / PROGRAM
    program.write_text(MAIN)
    return [write_zip(folder / ZIP), program]


if __name__ == "__main__":
    for made in write_package(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")):
        out(str(made))
