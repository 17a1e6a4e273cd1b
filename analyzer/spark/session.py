"""The Spark session: checks Java first, logs Spark's output to a file, stays off the network,
removes its temporary files, and keeps all settings of the user and of spark-submit."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kafkascope.analyzer.spark.package import ZIP, write_zip
from kafkascope.captures.errors import CaptureError, NotAllowed
from kafkascope.extras import require

JAVA: Final = 17
LOOPBACK: Final = "127.0.0.1"
PREFIX: Final = "kafkascope-spark-"

DEFAULTS: Final = {
    "spark.app.name": "kafkascope",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A connection must stay whole: no partition is ever split or rebalanced.
    "spark.sql.adaptive.skewJoin.enabled": "false",
    "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.task.maxFailures": "4",
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}
ADJUSTED: Final = (
    "spark.sql.session.timeZone",
    "spark.sql.parquet.outputTimestampType",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.execution.arrow.maxBytesPerBatch",
)
LOCAL: Final = {
    "spark.driver.memory": "1g",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.python.unix.domain.socket.enabled": "true",
    # Most payloads are compressed already, and nothing goes over a network.
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
}
"""Settings for a session that is started on this machine."""
JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVM options for short runs: full compilation takes longer than it saves."""


class NoSpark(NotAllowed):
    """The Java that Spark needs is missing."""


def check() -> None:
    """Raise `MissingExtra` or `NoSpark`, with a remedy, when Spark cannot start here."""
    require("kafkascope spark --engine spark", instead="kafkascope spark --engine plain")
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    where = "JAVA_HOME" if home else "the PATH"
    remedy = f"Spark needs Java {JAVA} or newer; --engine plain needs none"
    if java is None or not Path(java).exists():
        raise NoSpark(f"no java on {where}: {remedy}")
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', output.stderr + output.stdout)
    if found is None:
        raise NoSpark(f"{java} cannot be started: {remedy}")
    if int(found[1]) < JAVA:
        raise NoSpark(f"{java} (on {where}) is Java {found[1]}: {remedy}")


def sweep(parent: str) -> None:
    """Remove the temporary folders of runs that were killed."""
    for path in Path(parent).glob(f"{PREFIX}*"):
        number = path.name.removeprefix(PREFIX).partition("-")[0]
        if number.isdecimal() and not _runs(int(number)):
            shutil.rmtree(path, ignore_errors=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def session(
    *,
    master: str | None = None,
    remote: str | None = None,
    temporary: str | None = None,
    shuffle_bytes: int = 0,
    ui: bool = False,
    settings: dict[str, str] | None = None,
) -> Iterator[Any]:
    """Yield a SparkSession: the active one (spark-submit, a notebook), or a new one that is stopped
    at the end. `shuffle_bytes`: space that is needed on the disk."""
    if remote:
        yield from _remote(remote, settings or {})
        return
    check()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        _adjust(active)
        yield active
        return
    parent = temporary or tempfile.gettempdir()
    sweep(parent)
    free = shutil.disk_usage(parent).free
    if shuffle_bytes > free:
        raise CaptureError(
            f"{parent} has {free >> 20} MB left, and the shuffle takes about "
            f"{shuffle_bytes >> 20} MB: choose another folder with --temp-dir"
        )
    folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent)
    try:
        spark = _start(Path(folder), master, ui, settings or {})
        try:
            yield spark
        finally:
            with _silenced(Path(folder) / "spark.log"):
                spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def spoken(error: Exception) -> CaptureError | None:
    """Return an error of Spark as a sentence: the worker's last message; None for other errors."""
    kinds = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if not kinds & {"pyspark", "py4j"}:
        return None
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if re.match(r"[\w.]*(Error|Exception|[A-Z]\w+): ", line)]
    workers = [line for line in said if not line.startswith(("org.", "java.", "Caused by"))]
    text = (workers or said or lines or [type(error).__name__])[-1 if workers else 0]
    return CaptureError(f"Spark: {text} (--debug shows all)")


def _remote(url: str, settings: dict[str, str]) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(url)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        _adjust(spark)
        with tempfile.TemporaryDirectory() as folder:
            spark.addArtifacts(str(write_zip(Path(folder) / ZIP)), pyfile=True)
            yield spark
    finally:
        spark.stop()


def _adjust(spark: Any) -> None:
    """Set what the tables' types and the memory of this code need in a session started
    elsewhere."""
    for name in ADJUSTED:
        spark.conf.set(name, DEFAULTS[name])


def _start(folder: Path, master: str | None, ui: bool, settings: dict[str, str]) -> Any:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    _reach_workers()
    wanted = dict(DEFAULTS)
    if not submitted:
        wanted["spark.local.dir"] = str(folder)
        wanted["spark.sql.warehouse.dir"] = str(folder / "warehouse")
        wanted["spark.master"] = master or "local[*]"
        if _in_one_process(master):
            os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
            wanted |= LOCAL
            log4j = f"-Dlog4j2.configurationFile={_log4j(folder)}"
            wanted["spark.driver.extraJavaOptions"] = f"{log4j} {JVM}"
    if ui:
        wanted["spark.ui.enabled"] = "true"
    wanted |= settings
    conf = SparkConf(loadDefaults=submitted)
    for name, value in wanted.items():
        if not submitted or not conf.contains(name) or name in settings:
            conf.set(name, value)
    log = folder / "spark.log"
    try:
        with _silenced(log):
            spark = SparkSession.builder.config(conf=conf).getOrCreate()
            if not submitted and not _in_one_process(master):
                spark.sparkContext.addPyFile(str(write_zip(folder / ZIP)))
            return spark
    except Exception as error:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:]) if log.exists() else ""
        raise NoSpark(f"Spark did not start: {error}\n{tail}") from None


def _in_one_process(master: str | None) -> bool:
    return master is None or bool(re.fullmatch(r"local(\[[^]]*\])?", master))


def _log4j(folder: Path) -> Path:
    path = folder / "log4j2.properties"
    path.write_text(
        "rootLogger.level = warn\n"
        "rootLogger.appenderRef.stdout.ref = console\n"
        "appender.console.type = Console\n"
        "appender.console.name = console\n"
        "appender.console.target = SYSTEM_ERR\n"
        "appender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex\n"
        "logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer\n"
        "logger.gateway.level = warn\n"
    )
    return path


def _reach_workers() -> None:
    """Make workers import the packages from the same place, whatever the current folder: a folder
    `captures` there must not be imported instead."""
    import kafkascope

    home = str(Path(kafkascope.__file__).parents[1])
    known = os.environ.get("PYTHONPATH", "")
    if Path(home).name != "site-packages" and home not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(part for part in (home, known) if part)
    os.environ.setdefault("PYTHONSAFEPATH", "1")


@contextlib.contextmanager
def _silenced(log: Path) -> Iterator[None]:
    """Redirect file descriptors 1 and 2 to a log; processes started meanwhile keep it."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, old in zip((1, 2), saved, strict=True):
            os.dup2(old, number)
            os.close(old)
        os.close(target)
