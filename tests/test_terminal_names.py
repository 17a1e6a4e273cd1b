"""Names in TLS, in schemas and in decoded values: no output lets a terminal or a spreadsheet obey
them."""

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkascope.tui.cli import main
from tests.hostile import forged
from tests.hostile_schemas import write_hostile_schemas
from tests.hostile_tls import write_hostile_tls

TLS = [
    "stats connections IN",
    "stats connections IN --json",
    "stats connections IN --format csv",
    "stats connections IN --format tsv",
    "check IN",
    "check IN --json",
    "ls IN --columns number,tls.sni,tls.alpn",
    "ls IN --connects --format csv",
    "report IN -o OUT.md",
    "report IN -o OUT.html",
    "tls-keys check KEYS IN",
    "tls-keys check KEYS IN --format csv",
]
SCHEMAS = [
    "schemas IN",
    "schemas IN -v",
    "schemas IN --json",
    "schemas IN --format csv",
    "schemas IN --format tsv",
    "schemas IN -o OUT",
    "records IN --value --headers",
    "records IN --json",
    "records IN --format csv",
    "show IN 1-9 --hex",
    "show IN 1-9 --json",
    "check IN -v",
    "check IN --json",
    "check IN --format csv",
    "report IN -o OUT.md",
    "report IN -o OUT.html",
    "export IN -o - --table records --format csv",
    "stats topics IN",
    "stats topics IN --format csv",
    "diff IN IN",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("names")
    write_hostile_tls(place / "tls.pcapng")
    write_hostile_schemas(place / "schemas.pcapng")
    (place / "keys").write_bytes(
        "=cmd\x1b[31m\x9b2J 00 \u202e\nCLIENT_RANDOM\x1b[31m 00 00\n".encode()
    )
    return place


def run(line: str, capture: Path, out: Path) -> Result:
    put = {"IN": capture, "KEYS": capture.parent / "keys"}
    words = [str(put.get(word, word.replace("OUT", str(out)))) for word in line.split()]
    done = CliRunner().invoke(main, words)
    assert done.exit_code in (0, 1), done.output
    return done


def held(line: str, done: Result, out: Path) -> None:
    assert not forged(done.stdout)
    assert not forged(done.stderr)
    for path in out.parent.glob(f"{out.name}.*"):
        assert not forged(path.read_text())
    if "csv" in line:
        cells = [cell for row in csv.reader(io.StringIO(done.stdout)) for cell in row]
        assert len(cells) > 3
        assert not [cell for cell in cells if cell[:1] in ("=", "+", "@", "\t", "\r")]


@pytest.mark.parametrize("line", TLS)
def test_names_in_handshakes(line: str, folder: Path, tmp_path: Path) -> None:
    held(line, run(line, folder / "tls.pcapng", tmp_path / "out"), tmp_path / "out")


@pytest.mark.parametrize("line", SCHEMAS)
def test_names_in_schemas_and_values(line: str, folder: Path, tmp_path: Path) -> None:
    held(line, run(line, folder / "schemas.pcapng", tmp_path / "out"), tmp_path / "out")


def test_the_names_are_shown(folder: Path, tmp_path: Path) -> None:
    for line, capture, count in (
        ("check IN", "tls", 2),
        ("schemas IN", "schemas", 5),
        ("stats connections IN --json", "tls", 6),
    ):
        done = run(line, folder / f"{capture}.pcapng", tmp_path / "out")
        assert done.stdout.count("[red]") >= count, done.stdout
