"""Real clients through mitmdump with our add-on, before three brokers: with the mitmproxy that is
installed (11), and with a 12 in an environment of its own, which needs Python 3.12."""

import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkascope.bridges.mitmproxy.brokers import free_port
from tests.interop.make_findings_kit import read
from tests.interop.maven import CACHE, once
from tests.interop.processes import end, ready, run
from tests.interop.proxied import SecuredCluster
from tests.kit.samples import ROOT

pytestmark = pytest.mark.interop

TWELVE = "12.3.1"
PATIENCE_S = 60.0
RECORDS = 60
SCRIPT = ROOT / "kafkascope" / "bridges" / "mitmproxy" / "script.py"


def new_python() -> str | None:
    """A Python that takes mitmproxy 12, wherever one is."""
    candidates = [shutil.which(name) for name in ("python3.13", "python3.12")]
    pyenv = shutil.which("pyenv")
    if pyenv is not None:
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=True)
        versions = Path(root.stdout.strip()) / "versions"
        candidates += [str(each) for each in sorted(versions.glob("3.1[23]*/bin/python"))]
    for each in candidates:
        if each is None:
            continue
        # Some are only names that say where a Python could be.
        said = subprocess.run([each, "--version"], capture_output=True, text=True, check=False)
        if said.returncode == 0:
            return each
    return None


def twelve() -> Path:
    """mitmdump 12, installed once with what kafkascope itself needs."""
    home = CACHE / f"mitmproxy-{TWELVE}"

    def install() -> None:
        python = new_python()
        if python is None:
            pytest.skip("needs Python 3.12 or newer for mitmproxy 12")
        run(python, "-m", "venv", "--clear", home)
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        wanted = [f"mitmproxy=={TWELVE}", *project["dependencies"]]
        run(home / "bin" / "pip", "install", "-q", *wanted)

    return once(home, install) / "bin" / "mitmdump"


@pytest.fixture(scope="module", params=["11", "12"])
def mitmdump(request: pytest.FixtureRequest) -> Path:
    """The program, of each version."""
    return Path(sys.executable).with_name("mitmdump") if request.param == "11" else twelve()


@contextmanager
def running(mitmdump: Path, log: Path, *options: str) -> Iterator[None]:
    """mitmdump with the add-on, once it listens, until it has written its flows."""
    command = [str(mitmdump), "-s", str(SCRIPT), "--set", f"confdir={log.parent}", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    try:
        ready(process, log, lambda: "listening at" in log.read_text("utf-8"))
        yield
    finally:
        end(process, signal.SIGINT, PATIENCE_S)


def read_back(mitmdump: Path, flows: Path, *options: str) -> str:
    """What mitmdump says of flows in a file."""
    home = f"confdir={flows.parent}"
    command = [str(mitmdump), "-s", str(SCRIPT), "--set", home, "-n", "-r", str(flows), *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=True, timeout=120
    )
    return done.stdout + done.stderr


def consumed(bootstrap: str, topic: str) -> set[str]:
    settings = {"bootstrap.servers": bootstrap, "group.id": f"{topic}.group", "log_level": 0}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "client.id": "reader"})
    consumer.subscribe([topic])
    found = {each.value().decode() for each in read(consumer, RECORDS, PATIENCE_S)}
    consumer.close()
    return found


def test_clients_stay_behind_mitmproxy(
    clusters: Callable[[str], SecuredCluster], mitmdump: Path, tmp_path: Path
) -> None:
    cluster = clusters("4.4.0")
    upstream = cluster.bootstrap("PLAINTEXT").partition(",")[0]
    port = free_port("127.0.0.1")
    bootstrap, topic = f"127.0.0.1:{port}", f"mitm.{port}"
    log, flows = tmp_path / "log", tmp_path / "flows"
    mode = f"reverse:tcp://{upstream}@127.0.0.1:{port}"
    with running(mitmdump, log, "--mode", mode, "-w", str(flows)):
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, 6, 1)])[topic].result(PATIENCE_S)
        settings = {"bootstrap.servers": bootstrap, "client.id": "writer", "log_level": 0}
        producer = Producer(settings)
        told = producer.list_topics(timeout=30)
        assert len(told.brokers) == 3
        assert {each.port for each in told.brokers.values()}.isdisjoint(cluster.ports("PLAINTEXT"))
        leaders = {each.leader for each in told.topics[topic].partitions.values()}
        assert len(leaders) > 1
        for number in range(RECORDS):
            producer.produce(topic, f"record {number}", partition=number % 6)
        assert producer.flush(30) == 0
        assert consumed(bootstrap, topic) == {f"record {number}" for number in range(RECORDS)}
        said = log.read_text("utf-8")  # mitmproxy's own end is not told from an error of ours
        del admin, producer
    assert "Traceback" not in said, said
    assert said.count("listening at") == 4  # one for clients to begin with, one for each broker
    assert f" ok {topic}" in said
    assert "error" not in said.lower(), said

    shown = read_back(mitmdump, flows, "--set", "flow_detail=4")
    assert "ProduceRequest v" in shown
    assert "MetadataResponse v" in shown
    few = read_back(mitmdump, flows, "--set", f"kafka_filter=api == Produce and topic == {topic}")
    lines = [line for line in few.splitlines() if " > 127.0.0.1:" in line]
    assert lines
    assert all("Produce v" in line for line in lines)
