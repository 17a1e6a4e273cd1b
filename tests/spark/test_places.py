"""Inputs that are no files of this machine: a real S3 server on loopback."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.pipeline.places import listed
from kafkascope.analyzer.spark.engine import Spark
from kafkascope.captures.errors import NotACapture
from tests.analyzer.pipeline.kit import check_against_export, made
from tests.interop.processes import ready
from tests.kit.samples import SAMPLES
from tests.spark.environments import environment

NAMES = ("libraries.pcap", "cluster.pcap.gz", "sasl.pcap")


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A bucket `traces` with samples; its endpoint as the query of a URI."""
    from pyarrow import fs

    python = environment("moto", "moto[s3]>=5", "flask", "flask-cors")
    line = [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    # A file: a pipe would be full after some hundred requests, and the server would wait.
    log = tmp_path_factory.mktemp("moto") / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(line, stderr=out, stdout=subprocess.DEVNULL)
    running = re.compile(r"Running on http://127\.0\.0\.1:(\d+)\s")
    ready(server, log, lambda: running.search(log.read_text()))
    (port,) = running.findall(log.read_text())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        os.environ.setdefault(name, "test")
    query = f"endpoint_override=http://127.0.0.1:{port}&scheme=http&region=us-east-1"
    try:
        s3, _ = fs.FileSystem.from_uri(f"s3://traces/?{query}&allow_bucket_creation=true")
        s3.create_dir("traces")
        for name in NAMES:
            with s3.open_output_stream(f"traces/day=1/{name}", compression=None) as out:
                out.write((SAMPLES / name).read_bytes())
        with s3.open_output_stream("traces/day=1/notes.txt") as out:
            out.write(b"not a capture")
        yield query
    finally:
        server.terminate()
        server.wait()


def test_objects_are_read_as_files_are(spark: Any, bucket: str, tmp_path: Path) -> None:
    local = tmp_path / "day=1"
    local.mkdir()
    for name in NAMES:
        (local / name).write_bytes((SAMPLES / name).read_bytes())
    expected, _ = made([str(local)], tmp_path / "local")
    folder = f"s3://traces/day=1?{bucket}"
    for engine, size in ((None, 1 << 20), (Spark(spark, 2), 60_000)):
        out = tmp_path / f"out-{size}"
        found, _ = made([folder], out, engine, size)
        for table in found:
            if table != "captures":
                assert found[table] == expected[table], table
        check_against_export(out, [str(local)])


@pytest.mark.slow
def test_globs_and_what_is_not_there(bucket: str) -> None:
    found = listed([f"s3://traces/day=*/*.pcap?{bucket}"])
    assert [name.partition("?")[0].rpartition("/")[2] for name in found] == [
        "libraries.pcap",
        "sasl.pcap",
    ]
    for missing in ("day=2", "day=1/*.cap", "day=1/nothing.pcap"):
        with pytest.raises(NotACapture):
            listed([f"s3://traces/{missing}?{bucket}"])
