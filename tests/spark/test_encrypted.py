"""Tasks of Spark decrypt what one process decrypts, and leave no secret anywhere."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from kafkascope.analyzer.pipeline.runner import PLAIN
from kafkascope.analyzer.spark.engine import Spark
from kafkascope.analyzer.spark.session import PREFIX
from kafkascope.captures.inputs.keylogs import read_key_logs
from tests.analyzer.pipeline.encrypted import LOGS, encrypted, leaks, rotated
from tests.analyzer.pipeline.kit import LAST, NOW, caught, made, tables

RESUMES = "tls12-tickets"


def test_all_that_one_process_decrypts(spark: Any, events: Path, tmp_path: Path) -> None:
    captures = encrypted()
    expected, _ = made(captures, tmp_path / "plain", keys=read_key_logs(LOGS), frames=True)
    out = tmp_path / "spark"
    found, _ = made(captures, out, Spark(spark, 3), 9_000, keys=read_key_logs(LOGS), frames=True)
    assert found == expected
    assert any(events.iterdir())
    for folder in (tmp_path, events, *Path(tempfile.gettempdir()).glob(f"{PREFIX}{os.getpid()}-*")):
        # But for those that are inside of captures.
        assert list(leaks(folder, LOGS)) == []


def test_sessions_of_earlier_batches_are_resumed(spark: Any, tmp_path: Path) -> None:
    logs = [each for each in LOGS if each.name.startswith(RESUMES)]
    (tmp_path / "in").mkdir()
    first, *rest = rotated(f"{RESUMES}.pcap.gz", tmp_path / "in", 60)
    for name, engine in (("plain", PLAIN), ("spark", Spark(spark, 2))):
        spool = tmp_path / "spool" / name
        spool.mkdir(parents=True)
        for some, rule in (([first], NOW), (rest, LAST)):
            for path in some:
                shutil.copy(path, spool)
            caught(spool, tmp_path / name, rule, engine=engine, keys=read_key_logs(logs))
    expected, found = tables(tmp_path / "plain"), tables(tmp_path / "spark")
    found["captures"] = [row.replace("/spool/spark/", "/spool/plain/") for row in found["captures"]]
    assert found == expected
    assert len(found["exchanges"]) == 25
