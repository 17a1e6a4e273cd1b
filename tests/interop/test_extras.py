"""The bare wheel, and each extra alone, in environments of their own.

tests/test_extras.py hides modules, which is fast; here they are not installed.
"""

import json
import os
import shlex
import subprocess
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kafkascope.extras import EXTRAS
from tests.interop.wheels import build
from tests.kit.samples import ROOT
from tests.missing_extras import CAPTURE, COMMANDS, NOTES, PYTHON, TLS, USES, message

pytestmark = pytest.mark.interop

SHOP = str(ROOT / "captures" / "samples" / "demo.pcap.zst")
FIRST = {
    "kafkascope proxy --open": "kafkascope proxy",
    "kafkascope spark --engine spark": "kafkascope spark",
}
"""Uses that need a second extra, which is asked for first."""
WORKER = "TLS decryption in a Spark worker"
"""Where there is no Arrow, there is no worker."""
OWNER = {use: name for name, use in USES}
ANALYSIS = (
    *(f"{name} {SHOP}" for name in ("ls", "records", "clients", "groups", "cluster", "producers")),
    *(f"{name} {SHOP}" for name in ("topics", "latency", "errors", "connections", "schemas")),
    *(f"stats {name} {SHOP}" for name in ("apis", "partitions", "sizes", "rates")),
    f"show {SHOP} 5 --hex",
    f"check {SHOP} --rule tls-opaque",
    f"groups {SHOP} --delivery",
    f"report {SHOP} -o report.html",
    f"report {SHOP} -o report.md --redact all",
    f"export {SHOP} -o rows.jsonl --full",
    f"export {SHOP} -o records.csv --table records",
    f"cut {SHOP} -o cut.pcapng --anonymize",
    f"diff {SHOP} {SHOP}",
    f"fixture {SHOP} -o fixtures",
    "grammar Fetch 12",
    "decode HeartbeatRequest 0 0001670000000700016d",
    "encode HeartbeatRequest 0 {}",
    "fields api",
    "error 6",
    "demo",
    "demo --save demo.pcap",
    "doctor",
    "tls-keys java",
    "completion bash",
    "integrations mitmproxy",
    "proxy --help-faults",
    f"serve {SHOP} --until-eof",
)
WORKS = {
    "tui": "-c 'import kafkascope.tui.app'",
    "web": "-c 'import kafkascope.tui.web.server'",
    "proxy": "-m kafkascope proxy --upstream 127.0.0.1:1 --listen 127.0.0.1:0 --until-eof",
    "tls": f"-m kafkascope ls {TLS}/tls13-mutual.pcap.gz --keylog {TLS}/tls13-mutual.keys",
    "schemas": f"-m kafkascope ls {CAPTURE} --schema orders=order.json",
    "parquet": f"-m kafkascope export {CAPTURE} -o rows.parquet",
    "spark": "-c 'import kafkascope.spark'",
    "mcp": f"-m kafkascope integrations mcp {CAPTURE}",
    "telemetry": "-c 'import opentelemetry.proto.metrics.v1.metrics_pb2'",
}
"""What each extra is for, with nothing but the wheel and this extra."""


def closure(requirements: list[str], extra: str) -> dict[str, Distribution]:
    """The distributions that some requirements bring, with all that those require."""
    found: dict[str, Distribution] = {}
    waiting = [(Requirement(each), extra) for each in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        try:
            found_one = distribution(requirement.name)
        except PackageNotFoundError:
            continue
        key = canonicalize_name(requirement.name)
        if key in found and not requirement.extras:
            continue
        found[key] = found_one
        for each in found_one.requires or ():
            waiting += [(Requirement(each), wanted) for wanted in ("", *requirement.extras)]
    return found


class Environment:
    """A bare environment, and a folder for each extra. The wheel is installed; what its metadata
    require are links to the packages of this environment, which has them as locked: half a gigabyte
    need not be fetched and unpacked again."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / "venv" / "bin" / "python"
        wheel = build("wheel", ROOT, folder / "wheel")
        venv.create(folder / "venv", with_pip=True)
        pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", wheel], check=True)
        self.folders = {name: folder / name for name in EXTRAS}
        own = "import importlib.metadata as m; print(*m.requires('kafkascope'), sep='\\n')"
        self.requirements = self.run("", f'-c "{own}"', folder).stdout.splitlines()
        bare = closure(self.requirements, "")
        for each in bare.values():
            link(each, folder / "bare")
        (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
        (site / "bare.pth").write_text(f"{folder / 'bare'}\n")
        for name, target in self.folders.items():
            for key, each in closure(self.requirements, name).items():
                if key not in bare:
                    link(each, target)

    def run(self, extra: str, words: str, folder: Path) -> subprocess.CompletedProcess[str]:
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        if extra:
            env["PYTHONPATH"] = str(self.folders[extra])
        return subprocess.run(
            [self.python, *shlex.split(words)],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def link(package: Distribution, folder: Path) -> None:
    for file in package.files or ():
        if file.parts[0] != ".." and "__pycache__" not in file.parts:
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(Path(str(file.locate())).resolve())


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("extras"))


def test_the_bare_wheel_has_every_command_that_reads_captures(
    environment: Environment, tmp_path: Path
) -> None:
    for words in ANALYSIS:
        done = environment.run("", f"-m kafkascope {words}", tmp_path)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), (words, done.stderr)


SCRIPT = """
import contextlib, io, json, sys
from kafkascope.extras import EXTRAS, MissingExtra, installed
from kafkascope.tui.cli import main

commands, python, notes = json.load(open("uses.json"))
there = [name for name in EXTRAS if installed(name)]
lacked = {use for name in EXTRAS if name not in there for use in EXTRAS[name].uses}
if "parquet" not in there:
    lacked.discard("TLS decryption in a Spark worker")
answers = {}
for use in lacked & commands.keys():
    with contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main(commands[use])
        except SystemExit as error:
            answers[use] = error.code, err.getvalue()
for use in lacked & python.keys():
    try:
        exec(python[use], {})
    except MissingExtra as error:
        answers[use] = 5, f"{error}\\n"
for use in lacked & notes.keys():
    names = {}
    exec(notes[use], names)
    answers[use] = 5, f"{names['notes']}\\n"
print(json.dumps([there, answers]))
"""


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_what_an_environment_lacks_is_one_message(
    extra: str, environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "uses.json").write_text(json.dumps([COMMANDS, PYTHON, NOTES]))
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "stored" / "_manifest").mkdir(parents=True)
    done = environment.run(extra, "script.py", tmp_path)
    assert done.returncode == 0, done.stderr
    there, answers = json.loads(done.stdout)
    assert extra in there if extra else there == []
    lacked = [(name, use) for name, use in USES if name not in there]
    if "parquet" not in there:
        lacked = [each for each in lacked if each[1] != WORKER]
    assert answers.keys() == {use for _, use in lacked}
    for name, use in lacked:
        first = FIRST.get(use, use)
        wanted = message(OWNER[first], first) if OWNER[first] not in there else message(name, use)
        code, text = answers[use]
        assert code == 5
        assert wanted in text
        assert text.count("\n") == 1


@pytest.mark.parametrize("use", COMMANDS)
def test_the_program_of_the_bare_wheel_says_what_is_missing(
    use: str, environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "stored" / "_manifest").mkdir(parents=True)
    done = environment.run("", f"-m kafkascope {shlex.join(COMMANDS[use])}", tmp_path)
    first = FIRST.get(use, use)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith(message(OWNER[first], first))
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_alone_is_enough_for_its_use(
    extra: str, environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "order.json").write_text('{"type": "object"}')
    done = environment.run(extra, WORKS[extra], tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
