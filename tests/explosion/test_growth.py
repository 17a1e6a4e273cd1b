"""Every command on every hostile capture, at one size and at twice that size: time grows with the
input, memory stays below a limit, nothing crashes. Takes hours; `make soak`. With
`-o log_cli=true --log-cli-level=INFO` each test says what was measured."""

import logging
from collections.abc import Callable
from functools import cache
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from click import Context, Group

from kafkascope.dissectors.registry import APIS, layout_of
from kafkascope.tui.cli import main
from tests.explosion.again import SAMPLES, write_again
from tests.explosion.attacks import ATTACKS, write_attack
from tests.explosion.declared import long_arrays, names, often
from tests.explosion.measuring import MEMORY_MB, Taken, measured
from tests.explosion.turns import exchange, write_capture
from tests.explosion.using import USES

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]

ALL: Final = ("-Y", "number > 0")
MANY: Final = ("-Y", "number <= 50000")
"""Of what takes scapy a millisecond for each packet."""
USING: Final = {use: (use, "IN") for use in USES}
"""What `using` does, in place of a command."""
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    **USING,
    "ls": ("ls", "IN"),
    "show": ("show", "IN", *ALL),
    "show --hex": ("show", "IN", *ALL, "--hex"),
    "show --json": ("show", "IN", *ALL, "--json"),
    "show --packets": ("show", "IN", *MANY, "--packets"),
    "records": ("records", "IN"),
    "records --json": ("records", "IN", "--json"),
    "schemas": ("schemas", "IN"),
    "export --full": ("export", "IN", "--full", "-o", "OUT.jsonl"),
    "export parquet": ("export", "IN", "-o", "OUT.parquet"),
    "export parquet --full": ("export", "IN", "--full", "-o", "OUT.parquet"),
    "spark": ("spark", "IN", "-o", "OUT", "--engine", "plain"),
    "spark --full --records": (
        *("spark", "IN", "-o", "OUT", "--engine", "plain"),
        *("--full", "--records"),
    ),
    "check": ("check", "IN"),
    "check --all --json": ("check", "IN", "--all", "--json"),
    "check sarif": ("check", "IN", "--format", "sarif"),
    "clients": ("clients", "IN"),
    "groups": ("groups", "IN"),
    "groups --delivery": ("groups", "IN", "--delivery"),
    "cluster": ("cluster", "IN"),
    "producers": ("producers", "IN"),
    "diff": ("diff", "IN", "IN"),
    "cut": ("cut", "IN", "-o", "OUT.pcapng"),
    "cut --decrypt": ("cut", "IN", "--decrypt", "-o", "OUT.pcapng"),
    "cut --comments": ("cut", "IN", "--comments", "-o", "OUT.pcapng"),
    "cut --secrets": ("cut", "IN", "--secrets", "-o", "OUT.pcapng"),
    "cut --anonymize": ("cut", "IN", "--decrypt", "--anonymize", "-o", "OUT.pcapng"),
    "fixture": ("fixture", "IN", "-o", "OUT"),
    "fixture --redact all": ("fixture", "IN", "-o", "OUT", "--redact", "all"),
    "report": ("report", "IN", "-o", "OUT.html"),
    "report --redact all": ("report", "IN", "-o", "OUT.html", "--redact", "all"),
    **{
        f"stats {name}": ("stats", name, "IN")
        for name in (
            *("apis", "connections", "errors", "latency", "partitions", "rates", "sizes"),
            *("topics", "zookeeper"),
        )
    },
}
TELLING: Final = (
    *("ls", "show", "show --json", "export parquet --full", "spark --full --records", "check"),
    *(
        "groups",
        "groups --delivery",
        "cluster",
        "cut --anonymize",
        "fixture --redact all",
        "report",
    ),
    *("replayed", "proxied"),
)
"""Commands and uses that look at all of a body, or keep something of it."""
DECLARED: Final = {"long arrays": (long_arrays, 2_000), "often": (often, 2_000)}
"""What is made of each API's messages, and how many elements or exchanges."""
STILL: Final = 3_000
"""Exchanges that have one value in common."""
JUDGING: Final = ("check", "report", "cut --comments", "tools", "screens", "replayed")
"""Commands and uses that hold exchanges against each other."""
AGAIN_BYTES: Final = 3 << 20
"""Of a sample in which all happens again and again."""
GROWTH: Final = 2.3
"""For twice the input."""
START_S: Final = 0.4
"""CPU time of a command that does nothing."""
USING_S: Final = 1200
"""CPU time for a whole use, which reads a capture some twenty times."""
LEAST_S: Final = 3.0
"""Less than this at twice the size says nothing about how it grows."""
TRIES: Final = 3
"""A busy machine takes longer for the same work, never less: the least of some tries counts."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """The captures of the attack that was asked for last, each made once for all commands."""
    folder = tmp_path_factory.mktemp("attacks")
    made: dict[tuple[str, int], Path] = {}

    def write(attack: str, factor: int) -> Path:
        if (attack, factor) not in made:
            for other in [each for each in made if each[0] != attack]:
                made.pop(other).unlink()
            path = made[attack, factor] = folder / f"{factor} x {attack}.pcapng"
            write_attack(attack, path, factor)
        return made[attack, factor]

    return write


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_grows_as_its_input(
    attack: str,
    command: str,
    capture: Callable[[str, int], Path],
    tmp_path: Path,
) -> None:
    holds(command, lambda factor: capture(attack, factor), tmp_path)


@pytest.mark.parametrize("kind", DECLARED)
@pytest.mark.parametrize("key", APIS, ids=lambda key: APIS[key].name)
def test_whatever_is_declared_does(key: int, kind: str, tmp_path: Path) -> None:
    """Each array of each message made long, and each message sent often with other values."""
    made, size = DECLARED[kind]
    paths = {factor: tmp_path / f"{factor} x {kind} of {APIS[key].name}" for factor in (1, 2)}
    for factor, path in paths.items():
        write_capture(path, made(key, APIS[key].versions.high, factor * size))
    for command in TELLING:
        holds(command, paths.__getitem__, tmp_path)


@pytest.mark.parametrize("key", APIS, ids=lambda key: APIS[key].name)
def test_whatever_stays_while_all_else_changes_does(key: int, tmp_path: Path) -> None:
    """What is kept by a group, topic, member, producer or node, with very much of one of them."""
    version = APIS[key].versions.high
    layouts = [layout_of(f"{APIS[key].name}{side}", version) for side in ("Request", "Response")]
    for still in dict.fromkeys(name for layout in layouts for name in names(layout.body)):
        paths = {factor: tmp_path / f"{factor} x {still}" for factor in (1, 2)}
        for factor, path in paths.items():
            write_capture(path, often(key, version, factor * STILL, still))
        holds("report", paths.__getitem__, tmp_path)


@pytest.mark.parametrize("renamed", [False, True], ids=["same names", "other names"])
@pytest.mark.parametrize("sample", SAMPLES)
def test_whatever_happens_again_and_again_does(sample: str, renamed: bool, tmp_path: Path) -> None:
    """Each trouble of a sample many times, of the same clients or of as many others."""
    whole = tmp_path / "once"
    write_again(whole, SAMPLES[sample], 1, renamed=False)
    count = max(1, AGAIN_BYTES // whole.stat().st_size)
    paths = {factor: tmp_path / f"{factor} x {sample}" for factor in (1, 2)}
    for factor, path in paths.items():
        write_again(path, SAMPLES[sample], factor * count, renamed=renamed)
    for command in JUDGING:
        holds(command, paths.__getitem__, tmp_path)


def holds(command: str, path_of: Callable[[int], Path], folder: Path) -> None:
    """Hold a command to the limits, on a capture of which there is twice as much, too."""
    twice = taken(command, path_of(2), folder)
    assert not twice.crashed, twice.errors
    assert twice.megabytes < MEMORY_MB
    start = started(command)
    least, once = twice.seconds, inf
    for _ in range(TRIES):
        if least - start <= LEAST_S - START_S:
            return
        once = min(once, taken(command, path_of(1), folder, alone=True).seconds)
        if grown(once, least, start) <= GROWTH:
            return
        # Twice the input may be the first that several processes read, which takes more CPU time.
        least = min(least, taken(command, path_of(2), folder, alone=True).seconds)
        if grown(once, least, start) <= GROWTH:
            return
    raise AssertionError(f"{command}: {once:.1f} s of CPU time, {least:.1f} s for twice the input")


def grown(once: float, twice: float, start: float) -> float:
    return (twice - start) / max(once - start, 0.1)


@cache
def started(command: str) -> float:
    """Return the CPU time that a command takes for a capture of one exchange: what it takes to look
    at more than an attack has is no part of its start, and would be taken for growth."""
    if command not in USING:
        return START_S
    with TemporaryDirectory() as folder:
        path = Path(folder, "one")
        write_capture(path, [exchange("Metadata", 1, {"topics": None}, {})])
        took = measured([command, path], program="tests.explosion.using")
    assert not took.code, took.errors
    return took.seconds


def takes_jobs(name: str, below: str) -> bool:
    """Return whether a command may have several processes."""
    if name in USING:
        return False
    found = main.get_command(Context(main), name)
    assert found is not None
    if isinstance(found, Group):
        found = found.get_command(Context(found), below) or found
    return any(each.name == "jobs" for each in found.params)


def taken(command: str, path: Path, folder: Path, *, alone: bool = False) -> Taken:
    """Run a command on a file; `alone`: in one process, where it may be several."""
    with TemporaryDirectory(dir=folder) as out:
        put = {"IN": str(path), "OUT": str(Path(out, "out"))}
        arguments = []
        for each in COMMANDS[command]:
            for mark, text in put.items():
                each = text + each.removeprefix(mark) if each.startswith(mark) else each
            arguments.append(each)
        if alone and takes_jobs(*arguments[:2]):
            arguments += ["--jobs", "1"]
        if command in USING:
            took = measured(arguments, USING_S, program="tests.explosion.using")
        else:
            took = measured(arguments)
    log.info("%s of %s: %s", command, path.stem, took[:3])
    return took
