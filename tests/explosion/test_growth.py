"""Every command on every hostile capture, at one size and at twice that size: time grows with the
input, memory stays below a limit, nothing crashes. Takes more than an hour; `make soak`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.explosion.inputs import ATTACKS, write_attack
from tests.explosion.measuring import MEMORY_MB, Taken, measured

pytestmark = [pytest.mark.soak, pytest.mark.timeout(7200)]

ALL: Final = ("-Y", "number > 0")
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "ls": ("ls", "IN"),
    "show": ("show", "IN", *ALL),
    "show --hex": ("show", "IN", *ALL, "--hex"),
    "show --json": ("show", "IN", *ALL, "--json"),
    "records": ("records", "IN"),
    "records --json": ("records", "IN", "--json"),
    "export --full": ("export", "IN", "--full", "-o", "OUT.jsonl"),
    "check": ("check", "IN"),
    "clients": ("clients", "IN"),
    "groups": ("groups", "IN"),
    "delivery": ("delivery", "IN"),
    "cluster": ("cluster", "IN"),
    "producers": ("producers", "IN"),
    "diff": ("diff", "IN", "IN"),
    "cut": ("cut", "IN", "-o", "OUT.pcapng"),
    "cut --anonymize": ("cut", "IN", "--anonymize", "-o", "OUT.pcapng"),
    "fixture": ("fixture", "IN", "-o", "OUT"),
    "fixture --redact all": ("fixture", "IN", "-o", "OUT", "--redact", "all"),
    "report": ("report", "IN", "-o", "OUT.html"),
    **{
        f"stats {name}": ("stats", name, "IN")
        for name in (
            ["apis", "connections", "errors", "latency", "partitions", "rates", "sizes", "topics"]
        )
    },
}
GROWTH: Final = 2.3
"""For twice the input."""
START_S: Final = 0.4
"""CPU time of a command that does nothing."""
LEAST_S: Final = 3.0
"""Less than this at twice the size says nothing about how it grows."""


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_grows_as_its_input(attack: str, command: str, tmp_path: Path) -> None:
    twice = taken(attack, command, tmp_path, 2)
    assert not twice.crashed, twice.errors
    assert twice.megabytes < MEMORY_MB
    if twice.seconds > LEAST_S:
        once = taken(attack, command, tmp_path, 1)
        grown = (twice.seconds - START_S) / max(once.seconds - START_S, 0.1)
        assert grown <= GROWTH, (once.seconds, twice.seconds)


def taken(attack: str, command: str, folder: Path, factor: int) -> Taken:
    path = folder / f"{factor}.pcapng"
    write_attack(attack, path, factor)
    put = {"IN": str(path), "OUT": str(folder / f"out{factor}")}
    arguments = []
    for each in COMMANDS[command]:
        for mark, text in put.items():
            each = text + each.removeprefix(mark) if each.startswith(mark) else each
        arguments.append(each)
    return measured(arguments)
