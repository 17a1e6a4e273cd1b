"""What the commands of the README print on terminals of 80, 120 and 200 columns: nothing overflows,
the answer is on the screen, and all of it is as it was. `UPDATE_GOLDEN=1` writes the files.
"""

import os
import shlex
from pathlib import Path
from typing import Final

import pytest

from kafkascope.analyzer.commands import ls, output, tables
from kafkascope.analyzer.text import columns_taken
from tests.kit.run import run
from tests.kit.samples import ROOT
from tests.kit.schemas import capture

GOLDEN: Final = Path(__file__).parent / "terminals"
WIDTHS: Final = (80, 120, 200)
README: Final = {
    "clients demo.pcap --for 4.0": ("legacy-export", "breaks", "4.0.0", "Fetch v3", "Produce v2"),
    "groups demo.pcap billing --timeline": ("billing-2", "5.4 s", "session"),
    "cluster demo.pcap --only nodes": ("172.17.0.4:29092", "failed", "reports-ui"),
    "check demo.pcap": ("172.17.0.4:29092", "billing-2", "legacy-export", "crm-sync"),
    "latency demo.pcap": ("Produce", "3.8 s"),
    "errors demo.pcap": ("NOT_LEADER_OR_FOLLOWER", "inventory-sync", "94"),
    "producers demo.pcap": ("2001", "orders-svc"),
    "records demo.pcap -n 5": ("orders", "customer-7", '{"order":470'),
    "map demo.pcap": ("orders-svc", "-> billing", "not read in this capture"),
    "ls demo.pcap -Y 'latency > 500ms and not wait'": ("checkout", "Produce", "3.8 s"),
}
"""What the README types, with the answers: on terminals of all widths."""
OTHERS: Final = {
    "clients demo.pcap": ("crm-sync", "kept out", "SCRAM-SHA-256", "legacy-export"),
    "clients demo.pcap --apis -n 12": ("Fetch", "0-17"),
    "groups demo.pcap": ("billing", "5.4 s"),
    "groups demo.pcap billing": ("expired", "5.4 s", "fenced"),
    "groups demo.pcap --delivery": ("142", "6.6 s"),
    "cluster demo.pcap": ("controller 2", "172.17.0.4:29092", "orders"),
    "topics demo.pcap": ("inventory", "94", "checkout"),
    "connections demo.pcap -n 12": ("orders-svc", "10.0.1.1:9092", "fin"),
    "stats apis demo.pcap": ("Produce", "363"),
    "schemas bad-schemas.pcap": ("missing",),
    "fields epoch": ("producer.epoch", "generation or member epoch"),
}
"""The other tables, on the narrowest terminal."""
COMMANDS: Final = README | OTHERS
FILES: Final = {
    "demo.pcap": ROOT / "captures" / "samples" / "demo.pcap.zst",
    "bad-schemas.pcap": capture("bad-schemas"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the captures have the names that are typed, and printed."""
    here = tmp_path_factory.mktemp("terminal")
    for name, path in FILES.items():
        (here / name).symlink_to(path)
    return here


def screen(monkeypatch: pytest.MonkeyPatch, folder: Path, command: str, width: int | None) -> str:
    """Return what a command prints on stdout, on a terminal or (without a width) in a pipe."""
    for module in (ls, output, tables):
        monkeypatch.setattr(module, "terminal_width", lambda: width)
    monkeypatch.chdir(folder)
    result = run(*shlex.split(command))
    assert result.exit_code in (0, 1), result.output
    return result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_the_answer_is_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, folder: Path, command: str
) -> None:
    name = "-".join("".join(c if c.isalnum() else " " for c in command).split())
    for width in WIDTHS if command in README else WIDTHS[:1]:
        text = screen(monkeypatch, folder, command, width)
        assert max(map(columns_taken, text.splitlines())) <= width
        flowing = " ".join(text.split())
        assert not [answer for answer in COMMANDS[command] if answer not in flowing]
        golden = GOLDEN / f"{name}-{width}.txt"
        if os.environ.get("UPDATE_GOLDEN"):
            golden.write_text(text, "utf-8")
        assert text == golden.read_text("utf-8"), golden.name


def test_wide_tables_have_all_columns(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    narrow = screen(monkeypatch, folder, "clients demo.pcap --for 4.0", 80)
    assert narrow.splitlines()[-1].endswith(" columns hidden: --wide, or --json")
    for command in ("clients demo.pcap --for 4.0", "ls demo.pcap -n 3", "records demo.pcap -n 3"):
        head, *rows = screen(monkeypatch, folder, f"{command} --wide", 80).splitlines()
        titles = screen(monkeypatch, folder, f"{command} --wide", None).splitlines()[0].split("\t")
        empty = rows[-1].removeprefix("empty columns: ") if "empty" in rows[-1] else ""
        assert [title for title in titles if title not in f"{head}, {empty}"] == []
        assert "hidden" not in "".join(rows)


def test_in_a_pipe_nothing_is_cut_or_hidden(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    head, *rows = screen(monkeypatch, folder, "clients demo.pcap --for 4.0", None).splitlines()
    assert {row.count("\t") for row in (head, *rows)} == {head.count("\t")}
    assert {"Verdict", "Breaks at", "Why", "Outcome"} <= set(head.split("\t"))
    assert "…" not in "".join(rows)


def test_columns_of_the_question_come_first(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """A filter or an order by a column keeps it on a terminal that hides it else."""
    usual = screen(monkeypatch, folder, "ls demo.pcap -n 3", 80).splitlines()[0].split()
    asked = (
        screen(monkeypatch, folder, "ls demo.pcap -n 3 --sort broker", 80).splitlines()[0].split()
    )
    assert "Broker" in asked
    assert "Broker" not in usual
