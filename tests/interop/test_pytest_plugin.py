"""pytest-kafkascope: its example with a real broker, what a failure leaves, a bare environment."""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.interop.processes import running, until
from tests.interop.scenarios import make_topics
from tests.kit.samples import ROOT

PLUGIN = ROOT / "bindings" / "python"
SAMPLES = ROOT / "captures" / "samples"
KAFKASCOPE = Path(sys.executable).with_name("kafkascope")

RAW = '''
import socket


def api_versions(bootstrap, client=b"raw"):
    """An ApiVersions request, version 0, and its answer."""
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), 60) as link:
        request = bytes([0, 18, 0, 0, 0, 0, 0, 7, 0, len(client)]) + client
        link.sendall(len(request).to_bytes(4, "big") + request)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            data = link.recv(65536)
            assert data
            answer += data
    return answer


def test_passes(kafka_proxy, kafka_replay_broker):
    proxy = kafka_proxy(kafka_replay_broker(SAMPLE).bootstrap)
    assert api_versions(proxy.bootstrap)[4:8] == bytes([0, 0, 0, 7])
    proxy.assert_request(api="ApiVersions", version=0, client="raw", count=1)
    proxy.assert_no_errors()
    proxy.assert_no_findings(level="warning")
    for failing in (lambda: proxy.assert_versions(Produce=9), lambda: proxy.findings("grave")):
        try:
            failing()
        except (AssertionError, ValueError) as error:
            assert str(error) in (
                "Produce was not used", "'grave' is none of error, warning, note, chat"
            )
        else:
            raise RuntimeError("it passes")
    proxy.assert_versions(ApiVersions=0)
    proxy.assert_versions_at_most(ApiVersions=0, Fetch=3)
    try:
        proxy.assert_request(api="Fetch", where="api == Fetch")
    except AssertionError as error:
        assert "1 ApiVersions v0" in str(error)
    else:
        raise RuntimeError("it found a Fetch")
    try:
        proxy.add_rule("nonsense")
    except Exception as error:
        assert "KafkascopeError" in type(error).__name__
    else:
        raise RuntimeError("it took nonsense")


def wrong_password(bootstrap):
    """SaslHandshake 1 and SaslAuthenticate 0 with PLAIN."""
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), 60) as link:
        for request in (
            bytes([0, 17, 0, 1, 0, 0, 0, 1, 0, 3]) + b"raw" + bytes([0, 5]) + b"PLAIN",
            bytes([0, 36, 0, 0, 0, 0, 0, 2, 0, 3]) + b"raw" + bytes([0, 0, 0, 12])
            + bytes(1) + b"alice" + bytes(1) + b"wrong",
        ):
            link.sendall(len(request).to_bytes(4, "big") + request)
            assert link.recv(65536)


def test_fails(kafka_proxy, kafka_replay_broker):
    broker = kafka_replay_broker(SAMPLE, "--user", "alice:secret")
    proxy = kafka_proxy(broker.bootstrap)
    wrong_password(proxy.bootstrap)
    broker.assert_stderr("the password of 'alice' does not match")
    try:
        broker.assert_stderr("nonsense", timeout=0)
    except AssertionError as error:
        assert "'nonsense' is not in its stderr" in str(error)
        assert "the password of 'alice'" in str(error)
    else:
        raise RuntimeError("nonsense is in its stderr")
    proxy.assert_no_findings(level="warning", allow=["sasl-failed"])
    proxy.assert_no_findings(level="warning")
'''

OTHERS = """
import asyncio
import subprocess

import pytest

REQUEST = bytes([0, 0, 0, 14, 0, 18, 0, 0, 0, 0, 0, 7, 0, 4]) + b"bash"


@pytest.mark.asyncio
async def test_holds_while_a_client_of_asyncio_waits(kafka_proxy, kafka_replay_broker):
    proxy = kafka_proxy(kafka_replay_broker(SAMPLE).bootstrap, hold="api == ApiVersions")
    host, _, port = proxy.bootstrap.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(REQUEST)
    answer = asyncio.create_task(reader.readexactly(8))
    (held,) = await asyncio.to_thread(proxy.held)
    assert held["api"] == "ApiVersions"
    assert not answer.done()
    proxy.release()
    assert (await answer)[4:] == bytes([0, 0, 0, 7])
    writer.close()


def test_clients_of_other_languages(kafka_proxy, kafka_replay_broker):
    proxy = kafka_proxy(kafka_replay_broker(SAMPLE).bootstrap)
    place = "/".join(proxy.bootstrap.rsplit(":", 1))
    octal = "".join(f"\\\\{byte:03o}" for byte in REQUEST)
    script = f"exec 3<>/dev/tcp/{place}; printf '{octal}' >&3; head -c 8 <&3 | tail -c 4"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=120)
    assert done.stdout == bytes([0, 0, 0, 7]), done.stderr
    proxy.assert_request(api="ApiVersions", client="bash")
"""


def run(
    tests: Path, *arguments: str, python: str = sys.executable, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """pytest in a process of its own, with the plugin and nothing of this project's setup."""
    command = [python, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--rootdir", str(tests.parent), str(tests), *arguments]
    env = {**os.environ, **environment}
    return subprocess.run(
        command, cwd=tests.parent, env=env, capture_output=True, text=True, timeout=500
    )


def written(folder: Path) -> Path:
    path = folder / "test_raw.py"
    path.write_text(f"SAMPLE = {str(SAMPLES / 'librdkafka.pcap')!r}\n{RAW}")
    return path


def listed(path: Path) -> str:
    done = subprocess.run(
        [KAFKASCOPE, "ls", str(path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_failing_test_leaves_a_capture_and_nothing_else_stays(tmp_path: Path) -> None:
    """With xdist and asyncio, as other people's suites have them."""
    written(tmp_path)
    others = f"SAMPLE = {str(SAMPLES / 'librdkafka.pcap')!r}\n{OTHERS}"
    (tmp_path / "test_others.py").write_text(others)
    done = run(
        tmp_path,
        *("-n", "2", "-p", "pytest_kafkascope", f"--kafkascope-dir={tmp_path / 'kept'}"),
        *("--basetemp", str(tmp_path / "base")),
        PYTHONPATH=str(PLUGIN),
        KAFKASCOPE=str(KAFKASCOPE),
    )
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "1 finding of level warning or worse:" in done.stdout
    assert "error sasl-failed: Authentication of raw" in done.stdout
    (kept,) = (tmp_path / "kept").iterdir()
    assert "test_fails" in kept.name
    assert f"- kafkascope -\nthe traffic of this test: {kept}" in re.sub("-+", "-", done.stdout)
    assert "SaslAuthenticate v0" in listed(kept)
    assert running(tmp_path) == []


ENDLESS = """
import pathlib, time


def test_waits(kafka_proxy, kafka_replay_broker):
    kafka_proxy(kafka_replay_broker(SAMPLE).bootstrap)
    pathlib.Path(READY).write_text("")
    time.sleep(300)
"""


@pytest.mark.slow
def test_children_end_when_pytest_is_killed(tmp_path: Path) -> None:
    # The capture's path is how its children are known.
    sample = Path(shutil.copy(SAMPLES / "librdkafka.pcap", tmp_path / "traffic.pcap"))
    ready = tmp_path / "ready"
    test = tmp_path / "test_endless.py"
    test.write_text(f"SAMPLE, READY = {str(sample)!r}, {str(ready)!r}\n{ENDLESS}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["-p", "pytest_kafkascope", "--basetemp", str(tmp_path / "base"), str(test)]
    env = {**os.environ, "PYTHONPATH": str(PLUGIN), "KAFKASCOPE": str(KAFKASCOPE)}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL) as process:
        until(ready.exists)
        assert len(running(tmp_path)) == 3
        process.kill()
    until(lambda: not running(tmp_path))


def test_the_documented_example_is_the_one_that_is_run() -> None:
    example = "".join(path.read_text() for path in sorted((PLUGIN / "example").glob("*.py")))
    page = (ROOT / "docs" / "pytest.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    pieces = [piece.strip() for block in blocks for piece in block.split("\n\n\n")]
    assert len(pieces) > 4
    assert [piece for piece in pieces if piece not in example] == []


@pytest.mark.interop
def test_its_wheel_and_pytest_are_enough(tmp_path: Path) -> None:
    """In an environment with nothing else, it drives kafkascope in this one."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheel = ["wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path / "dist")]
    subprocess.run([*pip, *wheel, str(PLUGIN)], check=True, timeout=300)
    (built,) = (tmp_path / "dist").iterdir()
    venv.create(tmp_path / "bare", with_pip=False)
    python = str(tmp_path / "bare" / "bin" / "python")
    install = ["--python", python, "install", str(built)]
    subprocess.run([*pip, *install], check=True, timeout=300)
    probe = "import importlib.util as u; print([u.find_spec(n) for n in ('kafkascope', 'proxy')])"
    seen = subprocess.run([python, "-I", "-c", probe], cwd=tmp_path, capture_output=True, text=True)
    assert seen.stdout.strip() == "[None, None]"
    done = run(written(tmp_path), f"--kafkascope={KAFKASCOPE}", python=python)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.interop
def test_the_example_passes_against_a_real_broker_and_a_capture(brokers, tmp_path: Path) -> None:
    cluster = brokers("4.4.0")
    make_topics(cluster, "orders")  # while a new one has no leader, errors are answered
    done = run(
        PLUGIN / "example",
        *("-p", "pytest_kafkascope", "--basetemp", str(tmp_path / "base")),
        PYTHONPATH=str(PLUGIN),
        KAFKASCOPE=str(KAFKASCOPE),
        KAFKA_BOOTSTRAP=cluster.bootstrap(),
        KAFKA_EXAMPLE_CAPTURE=str(SAMPLES / "librdkafka.pcap"),
        KAFKA_EXAMPLE_TOPIC="librdkafka.none",
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr
    assert running(tmp_path) == []
