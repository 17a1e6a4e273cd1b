"""The same job on clusters of several processes, with the packaged code."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkascope.analyzer.spark.package import write_package
from tests.analyzer.pipeline.kit import made, tables
from tests.interop.brokers import free_ports
from tests.interop.needs import need
from tests.interop.processes import listens, run, until
from tests.kit.samples import ROOT
from tests.spark.environments import environment, stand

SAMPLES = ROOT / "captures" / "samples"
SMALL = ("--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=1")
OURS = (
    *("click", "rich", "construct", "cramjam", "google-re2", "google-crc32c", "orjson"),
    *("numpy", "zstandard", "pyarrow", "pandas>=2.2,<3"),
)
"""What a worker needs beside PySpark."""


def test_the_package_holds_all_that_a_job_imports(tmp_path: Path) -> None:
    zipped, program = write_package(tmp_path / "dist")
    assert write_package(tmp_path / "again")[0].read_bytes() == zipped.read_bytes()
    code = f"import sys; sys.path.insert(0, {str(zipped)!r}); "
    code += "import kafkascope.analyzer.commands.spark_job as job; "
    code += "import kafkascope.analyzer.pipeline.tasks; print(job.__file__)"
    assert run(sys.executable, "-P", "-c", code, cwd=tmp_path).startswith(str(zipped))
    assert program.read_text().count("main()") == 1


def spark_home(python: str | Path) -> Path:
    code = "import pyspark; print(pyspark.__path__[0])"
    return Path(run(python, "-c", code).strip())


@contextmanager
def running(*lines: list[str], log: Path, **environment: str) -> Iterator[None]:
    """Programs that are stopped at the end."""
    with log.open("ab") as out:
        started = [
            subprocess.Popen(line, stdout=out, stderr=out, env=os.environ | environment)
            for line in lines
        ]
        try:
            yield
        finally:
            for each in started:
                each.terminate()
            for each in started:
                each.wait()


@pytest.mark.soak
def test_workers_in_processes_of_their_own(tmp_path: Path) -> None:
    need("java")
    expected, _ = made([str(SAMPLES)], tmp_path / "expected")
    out = tmp_path / "out"
    line = [sys.executable, "-P", "-m", "kafkascope.tui.cli", "spark", str(SAMPLES), "-o", str(out)]
    line += ["--master", "local-cluster[2,1,600]", "--split-size", "400KB", "--tasks", "4", *SMALL]
    home = str(spark_home(sys.executable))
    env = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_HOME": home}
    run(*line, cwd=stand(tmp_path / "stand"), env=env)
    assert tables(out) == expected


@pytest.mark.soak
def test_a_standalone_cluster(tmp_path: Path) -> None:
    """Master and two workers; `spark-submit` with the package, then our own command."""
    need("java", "bash")
    expected, _ = made([str(SAMPLES)], tmp_path / "expected")
    home = spark_home(sys.executable)
    (port,) = free_ports(1)
    master = f"spark://127.0.0.1:{port}"
    kind = "org.apache.spark.deploy"
    start = [str(home / "bin" / "spark-class")]
    leader = [*start, f"{kind}.master.Master", "--host", "127.0.0.1", "--port", str(port)]
    leader += ["--webui-port", "0"]
    worker = [*start, f"{kind}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"]
    worker += ["-c", "1", "-m", "700m", "-d", str(tmp_path / "work"), master]
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
    env = os.environ | local
    zipped, program = write_package(tmp_path / "dist")
    here = stand(tmp_path / "stand")
    with running(leader, log=tmp_path / "log", **local):
        until(lambda: listens(port), 240)
        with running(worker, worker, log=tmp_path / "log", **local):
            out = tmp_path / "submitted"
            submit: list[str | Path] = [home / "bin" / "spark-submit", "--master", master, *SMALL]
            submit += ["--driver-memory", "600m", "--py-files", zipped, program, SAMPLES]
            submit += ["-o", out, "--split-size", "400KB", "--tasks", "4"]
            run(*submit, cwd=here, env=env | {"PYSPARK_PYTHON": sys.executable})
            assert tables(out) == expected
            out = tmp_path / "direct"
            line = [sys.executable, "-P", "-m", "kafkascope.tui.cli", "spark", SAMPLES, "-o", out]
            line += ["--master", master, "--tasks", "4", *SMALL]
            run(*line, cwd=here, env=env | {"PYTHONPATH": str(ROOT)})
            assert tables(out) == expected


@pytest.mark.soak
def test_spark_connect(tmp_path: Path) -> None:
    """Client and server in an environment of their own."""
    need("java", "bash")
    import pyspark

    expected, _ = made([str(SAMPLES)], tmp_path / "expected")
    python = environment("connect", f"pyspark[connect]=={pyspark.__version__}", *OURS)
    home = spark_home(python)
    (port,) = free_ports(1)
    server: list[str] = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    server += ["--driver-memory", "900m", "--conf", f"spark.connect.grpc.binding.port={port}"]
    server += ["--conf", "spark.connect.grpc.binding.address=127.0.0.1"]
    server += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"]
    server += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    server += ["spark-internal"]
    zipped, program = write_package(tmp_path / "dist")
    out = tmp_path / "out"
    environ = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home)}
    with running(server, log=tmp_path / "log", PYSPARK_PYTHON=str(python), **environ):
        until(lambda: listens(port), 240)
        line: list[str | Path] = [python, program, SAMPLES, "-o", out]
        line += ["--remote", f"sc://127.0.0.1:{port}", "--split-size", "400KB", "--tasks", "4"]
        env = os.environ | {"PYTHONPATH": str(zipped)}
        run(*line, cwd=stand(tmp_path / "stand"), env=env)
    assert tables(out) == expected
