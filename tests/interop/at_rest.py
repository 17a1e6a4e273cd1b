"""Log directories of any release: written by its broker, dumped by its tool, recovered by it."""

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.brokers import Cluster, KRaftCluster
from tests.interop.maven import BROKERS, CLIENTS, Artifact, classpath, jars
from tests.interop.processes import ready
from tests.interop.zookeeper import ZooKeeperCluster, admin_of, older

TIME_MS: Final = 1_700_000_000_000
COUNT: Final = 120
SEGMENT_BYTES: Final = 1500
FORMATS: Final = {0: "0.9.0", 1: "0.10.0", 2: "0.11.0"}


@dataclass(frozen=True, slots=True)
class Release:
    """A broker of this release, and what it can write."""

    version: str
    magics: tuple[int, ...]
    codecs: tuple[str, ...]
    kraft: bool = False

    @property
    def compacts(self) -> bool:
        return not older(self.version, "0.8.2")

    @property
    def transacts(self) -> bool:
        return 2 in self.magics

    def cluster(self, home: Path, **settings: str) -> Cluster:
        """A broker of one node."""
        small = {
            "log.index.interval.bytes": "100",
            "log.index.size.max.bytes": "4096",
            "log.segment.bytes": str(SEGMENT_BYTES),
            "num.partitions": "1",
        }
        if self.kraft:
            # Segments as small as this are for tests alone.
            small |= {"log.segment.bytes": "1048576"} if not older(self.version, "4.0") else {}
            small |= {"log.segment.delete.delay.ms": "600000"}
            return KRaftCluster(self.version, home=home, settings=small | settings)
        return ZooKeeperCluster(self.version, home=home, settings=small | settings)


_BEFORE: Final = ("none", "gzip", "snappy")
_LZ4: Final = (*_BEFORE, "lz4")
_ALL: Final = (*_LZ4, "zstd")

RELEASES: Final = {
    each.version: each
    for each in (
        Release("0.8.0", (0,), _BEFORE),
        Release("0.8.2.2", (0,), _LZ4),
        Release("0.9.0.1", (0,), _LZ4),
        Release("0.10.2.2", (1, 0), _LZ4),
        Release("1.1.1", (2, 1, 0), _LZ4),
        Release("2.8.2", (2, 1, 0), _ALL),
        Release("3.9.2", (2, 1, 0), _ALL),
        Release("4.4.0", (2,), _ALL, kraft=True),
    )
}


# --- writing

Row = tuple[str | None, str | None, list[list[str | None]], int | None]
"""Key, value, headers and time, where the format of the topic has them."""


@dataclass(slots=True)
class Folders:
    """What a broker left, and what was produced to it."""

    release: Release
    home: Path
    """All that was there after an orderly end."""
    killed: Path
    """The folder of a topic whose broker was killed while it was written to."""
    rows: dict[str, list[Row]]
    """Topic -> what was produced, in this order."""

    @property
    def clean(self) -> dict[str, Path]:
        """Topic -> its folder."""
        topics = (*self.rows, "tx", "compact", "__transaction_state", "__consumer_offsets")
        found = {topic: sorted(self.home.rglob(f"{topic}-0")) for topic in topics}
        return {topic: folders[0] for topic, folders in found.items() if folders}


def topics(release: Release) -> dict[str, tuple[str, int]]:
    """Topic -> codec and magic."""
    newest = release.magics[0]
    found = {f"c-{codec}": (codec, newest) for codec in release.codecs}
    for magic in release.magics[1:]:
        found |= {f"f{magic}-{codec}": (codec, magic) for codec in _LZ4}
    return found


def written(release: Release, home: Path) -> Folders:
    """Let a broker write topics of every format and codec; copy what it leaves."""
    cleaning = {"log.cleaner.enable": "true", "log.cleaner.dedupe.buffer.size": "8388608"}
    cleaning |= {"log.cleaner.backoff.ms": "200", "log.cleaner.min.cleanable.ratio": "0.01"}
    with release.cluster(home / "writing", **(cleaning if release.compacts else {})) as cluster:
        made = topics(release)
        configs: dict[str, dict[str, str]] = {}
        if not older(release.version, "0.10.2"):
            formats = len(release.magics) > 1
            for topic, (_, magic) in made.items():
                configs[topic] = {"message.format.version": FORMATS[magic]} if formats else {}
            configs["tx"] = {}
        if release.compacts:
            configs["compact"] = {"cleanup.policy": "compact"}
        if not older(release.version, "4.0"):
            # Smaller ones than 1 MB are for tests of Kafka's own alone.
            for each in configs.values():
                each["internal.segment.bytes"] = str(SEGMENT_BYTES)
        make(cluster, configs)
        rows = {
            topic: produce(cluster, topic, codec, headers=magic > 1, times=magic > 0)
            for topic, (codec, magic) in made.items()
        }
        if release.compacts:
            _compact(cluster)
        if release.transacts:
            transact(cluster, 4, 12)
        cluster.nodes[0].stop(seconds=120)
        shutil.copytree(cluster.nodes[0].home, home / "clean" / "1")
        return Folders(release, home / "clean", _killed(cluster, home), rows)


def _client(cluster: Cluster, **options: Any) -> dict[str, Any]:
    found = {
        "bootstrap.servers": cluster.bootstrap(),
        "linger.ms": 50,
        "batch.num.messages": 8,
        # A batch that is sent again must not come behind those sent after it.
        "max.in.flight.requests.per.connection": 1,
        "log_level": 0,
        "enable.metrics.push": False,
        **options,
    }
    if older(cluster.version, "0.10"):
        found |= {"api.version.request": False, "broker.version.fallback": cluster.version}
    return found


def make(cluster: Cluster, configs: dict[str, dict[str, str]]) -> None:
    """Make topics of one partition; old brokers make others when they are first written to."""
    if older(cluster.version, "0.11"):
        for topic, config in configs.items():
            assert isinstance(cluster, ZooKeeperCluster)
            told = [f"--config={name}={value}" for name, value in config.items()]
            command = ("--zookeeper", f"127.0.0.1:{cluster.keeper_port}", "--create")
            placed = ("--topic", topic, "--partitions", "1", "--replication-factor", "1")
            cluster.tool("kafka.admin.TopicCommand", *command, *placed, *told)
        return
    new = [NewTopic(name, 1, 1, config=config) for name, config in configs.items()]
    admin = admin_of(cluster.bootstrap())  # kept: what it was asked ends with it
    for done in admin.create_topics(new).values():
        done.result(240)


def produce(
    cluster: Cluster,
    topic: str,
    codec: str,
    *,
    headers: bool = True,
    times: bool = True,
    count: int = COUNT,
) -> list[Row]:
    """Write records to a topic; with headers some have no value, too."""
    producer = Producer(_client(cluster, **{"compression.type": codec}))
    failed: list[Any] = []
    rows: list[Row] = []
    for i in range(count):
        key = None if i % 7 == 0 else f"k{i}"
        value = f"{topic}/{i}/" + "abcdefgh"[i % 8] * (i % 40)
        shown = None if headers and key and i % 11 == 10 else value
        named = [["h", "x"], ["none", None]] if headers and i % 5 == 0 else []
        stamp = TIME_MS + 997 * i
        producer.produce(
            topic,
            key=key,
            value=shown,
            headers=[(name, text) for name, text in named],
            timestamp=stamp,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
        rows.append((key, shown, named, stamp if times else None))
        if i % 8 == 7:
            producer.flush(30)
    assert producer.flush(120) == 0
    assert not failed, failed[:3]
    return rows


def transact(cluster: Cluster, turns: int, each: int, size: int = 1) -> None:
    """Transactions in `tx`, of which every second one is aborted."""
    producer = Producer(_client(cluster, **{"transactional.id": "at-rest"}))
    producer.init_transactions(60)
    for turn in range(turns):
        producer.begin_transaction()
        for i in range(each):
            producer.produce("tx", value=f"{turn}-{i}" * size, timestamp=TIME_MS + i)
        producer.flush(30)
        end = producer.abort_transaction if turn % 2 else producer.commit_transaction
        end(60)


def _compact(cluster: Cluster) -> None:
    """Write the same few keys until the cleaner has been there."""
    producer = Producer(_client(cluster))
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for i in range(60):
            producer.produce("compact", key=f"k{i % 10}", value=f"{i}" * 5, timestamp=TIME_MS + i)
        producer.flush(30)
        time.sleep(0.3)
        if any(cluster.home.rglob("compact-0/*.log.deleted")):
            return
    raise AssertionError("the cleaner did not come")


def _killed(cluster: Cluster, home: Path) -> Path:
    """Start the broker again and kill it while a producer writes."""
    node = cluster.nodes[0]
    node.start()
    node.wait(cluster.listeners)
    # From here on nobody answers: what the client says of that is no matter.
    producer = Producer(_client(cluster, **{"message.timeout.ms": 60000}))
    size = 0
    end = time.monotonic() + 60
    number = 0
    while size < 2 * SEGMENT_BYTES and time.monotonic() < end:
        for _ in range(50):
            producer.produce("killed", value=f"killed/{number}", timestamp=TIME_MS + number)
            number += 1
        producer.flush(5)
        size = sum(path.stat().st_size for path in cluster.home.rglob("killed-0/*.log"))
    for _ in range(50):
        producer.produce("killed", value="x" * 100)
    producer.poll(0.05)
    node.stop(signal.SIGKILL)
    producer.purge()
    producer.flush(1)
    (folder,) = cluster.home.rglob("killed-0")
    copy = home / "clean" / folder.name
    shutil.copytree(folder, copy)
    return copy


# --- the tool


WORD: Final = re.compile(r"(\w+): (\S*)")


def tool_path(release: Release) -> tuple[str, str]:
    """Return the class of DumpLogSegments and the class path that has it."""
    if older(release.version, "4.0"):
        lib = jars(f"broker-{release.version}", BROKERS[release.version])
        return "kafka.tools.DumpLogSegments", classpath(lib)
    # 4.4.0 has none among its artifacts.
    artifact = Artifact("org.apache.kafka:kafka-tools:4.3.1")
    lib = jars("tools-4.3.1", (artifact, *CLIENTS["4.4.0"][1:]))
    return "org.apache.kafka.tools.DumpLogSegments", classpath(lib)


def dumped(release: Release, files: Iterable[Path]) -> dict[Path, list[dict[str, str]]]:
    """What the release's own tool prints of segments: the words of each line, by file."""
    main, path = tool_path(release)
    files = list(files)
    found: dict[Path, list[dict[str, str]]] = {each: [] for each in files}
    for begin in range(0, len(files), 200):
        some = files[begin : begin + 200]
        listed = ",".join(map(str, some))
        opened = "--add-opens=java.base/java.lang=ALL-UNNAMED"  # snappy of 0.8.0
        command = ["java", "-Xmx400m", "-XX:TieredStopAtLevel=1", opened, "-cp", path, main]
        options = ["--deep-iteration", "--print-data-log", "--files", listed]
        done = subprocess.run(
            [*command, *options], capture_output=True, text=True, errors="replace", timeout=300
        )
        at = some[0]
        for line in done.stdout.splitlines():
            if line.startswith("Dumping "):
                at = Path(line.removeprefix("Dumping ").strip())
            words = dict(WORD.findall(line))
            if "offset" in words or "baseOffset" in words:
                found[at].append(words)
    return found


# --- recovery


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a broker makes of a folder without a clean-shutdown file and recovery points."""

    started: bool
    files: dict[str, int]
    """Segment -> bytes that are left; those that it removed are absent."""
    folder: Path | None
    log: tuple[str, ...]
    """What the broker says of it, or why it does not start."""
    end_offset: int | None = None


END: Final = re.compile(r"(?:log end offset |logEndOffset=)(\d+)")


def recovered(release: Release, folders: dict[str, Path], home: Path) -> dict[str, Recovered]:
    """Let a broker start on copies of the folders, and again without the one that kept it from
    starting, until it starts. `folders`: by the name of the folder, `TOPIC-PARTITION`."""
    found: dict[str, Recovered] = {}
    data = home / "1" / "data"
    settings = {"log.dirs": str(data)}
    if release.kraft:
        settings["metadata.log.dir"] = str(data)
    cluster = release.cluster(home, **settings)
    try:
        cluster.nodes = cluster.plan()
        (node,) = cluster.nodes
        loud = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        node.command.insert(node.command.index("-cp"), loud)
        if release.kraft:
            # A node of KRaft moves folders that it does not know aside while it recovers them.
            _begin(cluster)
            make(cluster, {name.rpartition("-")[0]: {} for name in folders})
            node.stop(seconds=60)
        while True:
            rest = {name: folder for name, folder in folders.items() if name not in found}
            _place(data, rest, folders)
            node.log.unlink(missing_ok=True)
            try:
                _begin(cluster)
            except RuntimeError:
                node.stop(signal.SIGKILL)
                lines = node.log.read_text(errors="replace").splitlines()
                name, told = _culprit(lines, rest)
                found[name] = Recovered(False, {}, None, told)
                continue
            node.stop(signal.SIGKILL)
            lines = node.log.read_text(errors="replace").splitlines()
            return found | {name: _left(data, name, lines) for name in rest}
    finally:
        cluster.stop()


def _place(data: Path, folders: dict[str, Path], all_names: Iterable[str]) -> None:
    """Put copies of folders where a broker looks for them, as after a crash."""
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        (data / name).unlink(missing_ok=True)
    for name in all_names:
        for path in (data / name).iterdir() if (data / name).is_dir() else ():
            if path.name != "partition.metadata":
                path.unlink()
    for name, folder in folders.items():
        unwanted = shutil.ignore_patterns("partition.metadata")
        shutil.copytree(folder, data / name, ignore=unwanted, dirs_exist_ok=True)


FATAL: Final = re.compile(r"FATAL|error in one of the threads|Fatal error")


def _culprit(lines: list[str], folders: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Return the folder that kept a broker from starting, and what it said: named where it says
    so, else the last one that it was busy with."""
    at = next((at for at, line in enumerate(lines) if FATAL.search(line)), len(lines))
    before = lines[:at][::-1]
    # 2.8 does not say whose offsets it cannot split, but that it is about to; others are loaded
    # meanwhile.
    splits = [line for line in before if "overflow" in line]
    for line in (*lines[at : at + 3], *splits, *before):
        for name in folders:
            if _of(name, line):
                return name, tuple(lines[at : at + 4])
    raise RuntimeError("the broker does not start:\n" + "\n".join(lines[-30:]))


def _left(data: Path, name: str, lines: list[str]) -> Recovered:
    told = tuple(line for line in lines if _of(name, line))
    ends = [int(end[1]) for line in told if (end := END.search(line))]
    sizes = {path.name: path.stat().st_size for path in sorted((data / name).glob("*.log"))}
    return Recovered(True, sizes, data / name, told, ends[-1] if ends else None)


def _of(name: str, line: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", line) is not None


def _begin(cluster: Cluster) -> None:
    """Start the node and wait until it serves: one of KRaft listens before it has loaded logs."""
    (node,) = cluster.nodes
    node.start()
    node.wait(cluster.listeners)
    if not isinstance(cluster, KRaftCluster):
        return
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap(), "log_level": 0})

    def serves() -> bool:
        with suppress(Exception):  # any failure means: not yet
            return bool(admin.list_topics(timeout=2).brokers)
        return False

    assert node.process is not None
    ready(node.process, node.log, serves)
