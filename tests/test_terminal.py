"""What reaches a terminal: nothing that it would obey, from no module and no command."""

import ast
import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkascope.analyzer.logs import Formatter
from kafkascope.analyzer.terminal import indented, stdout_blocks
from kafkascope.tui.cli import main
from tests.hostile import EVIL, forged, hostile
from tests.kit.samples import ROOT
from tests.kit.served import serving

SAMPLES = ROOT / "captures" / "samples"
SHOP = ROOT / "tests" / "analyzer" / "captures" / "shop.pcap.zst"
PACKAGES = (
    "analyzer",
    "bridges",
    "captures",
    "dissectors",
    "kernel",
    "library",
    "proxy",
    "schemas",
    "tui",
)
WRITERS = {
    "analyzer/terminal.py": "the one place",
    "analyzer/logs.py": "log records, indented by the one place",
    "tui/process/splash.py": "draws a screen before Textual does",
}
STREAMS = {
    f"sys.{name}.{how}"
    for name in ("stdout", "stderr")
    for how in ("write", "writelines", "buffer")
}


def written_by(tree: ast.AST) -> Iterator[str]:
    """Where a module writes to stdout or stderr by itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("print", "click.echo", "click.secho", "echo", "Console", "basicConfig"):
                yield f"{node.lineno}: {name}"
            if name.endswith((".basicConfig", ".StreamHandler", ".print_exc", "click.style")):
                yield f"{node.lineno}: {name}"
        if isinstance(node, ast.Attribute) and ast.unparse(node) in STREAMS:
            yield f"{node.lineno}: {ast.unparse(node)}"


def test_every_module_writes_through_the_one_place() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{place}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in WRITERS
        for place in written_by(ast.parse(path.read_text("utf-8")))
    ]
    assert found == []
    for name in WRITERS:
        if name.startswith("analyzer/"):
            assert list(written_by(ast.parse((ROOT / name).read_text("utf-8"))))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures, some of them in files of hostile names."""
    place = tmp_path_factory.mktemp("hostile")
    hostile(SHOP, place / "shop.pcapng")
    hostile(SAMPLES / "transactions.pcap", place / "named\x1b[31m\nkafkascope: forged\u202e.pcapng")
    return place


@pytest.fixture(scope="module")
def shop(folder: Path) -> str:
    return str(folder / "shop.pcapng")


@pytest.fixture(scope="module")
def named(folder: Path) -> str:
    (path,) = folder.glob("named*")
    return str(path)


def run(*words: str) -> Result:
    done = CliRunner().invoke(main, words)
    assert done.exit_code in (0, 1, 2, 3, 4), done.output
    return done


TEXTS = [
    ("ls", "-v"),
    ("ls", "--format", "tsv"),
    ("ls", "--format", "csv"),
    ("ls", "--columns", "number,client,topic,group,member,error,summary"),
    ("ls", "-T", "fields", "-e", "client", "-e", "topic", "-e", "broker"),
    ("ls", "-Y", f"client == '{EVIL}'"),
    ("show", "1-60", "--hex"),
    ("show", "1-60"),
    ("show", "99999"),
    ("records", "-n", "200"),
    ("records", "--format", "csv", "-n", "200"),
    ("check",),
    ("check", "--format", "tsv"),
    ("clients",),
    ("clients", "--format", "csv"),
    ("groups",),
    ("groups", "--timeline"),
    ("groups", f"nobody{EVIL}"),
    ("groups", "--delivery"),
    ("groups", "--lag"),
    ("groups", "--delivery", f"nobody{EVIL}"),
    ("cluster",),
    ("producers",),
    ("stats", "apis"),
    ("stats", "errors"),
    ("stats", "topics"),
    ("stats", "topics", "--format", "csv"),
    ("stats", "connections"),
    ("stats", "throughput"),
    ("export", "-o", "-", "--format", "csv"),
    ("export", "-o", "-", "--format", "csv", "--table", "records"),
]


def told(words: tuple[str, ...], path: str) -> Result:
    name = 2 if words[0] == "stats" else 1
    return run(*words[:name], path, *words[name:])


@pytest.mark.parametrize(
    "words", TEXTS, ids=lambda words: " ".join(words)[:40].encode("unicode_escape")
)
def test_no_command_writes_what_a_terminal_obeys(words: tuple[str, ...], shop: str) -> None:
    done = told(words, shop)
    assert done.stdout + done.stderr
    assert not forged(done.stdout)
    assert not forged(done.stderr)


@pytest.mark.parametrize(
    "words", [("ls",), ("show", "1-200"), ("records",), ("check",), ("producers",)]
)
def test_neither_does_one_about_a_file_of_a_hostile_name(
    words: tuple[str, ...], named: str
) -> None:
    for path in (named, f"{named}.gone"):
        done = told(words, path)
        assert not forged(done.stdout)
        assert not forged(done.stderr)
    assert "no such file" in done.stderr


JSON = [
    ("ls", "--json"),
    ("ls", "--format", "json", "-n", "30"),
    ("ls", "--json", "--columns", "client,topic,error"),
    ("show", "1-60", "--json"),
    ("records", "--json"),
    ("records", "--format", "json"),
    ("check", "--json"),
    ("clients", "--json"),
    ("groups", "--json"),
    ("groups", "--delivery", "--json"),
    ("cluster", "--json"),
    ("producers", "--json"),
    ("stats", "topics", "--json"),
    ("export", "-o", "-", "--format", "jsonl", "--full"),
    ("export", "-o", "-", "--format", "jsonl", "--table", "records"),
]


@pytest.mark.parametrize("words", JSON, ids=" ".join)
def test_json_has_the_same_values_as_escapes(words: tuple[str, ...], shop: str) -> None:
    done = told(words, shop)
    assert not forged(done.stdout)
    whole = "json" in words
    values = (
        [json.loads(done.stdout)]
        if whole
        else [json.loads(x) for x in done.stdout.split("\n") if x]
    )
    # Sentences of findings are made for people; their filters tell names as they are.
    assert EVIL in "".join(texts_of(values)) or words[0] == "check"


def texts_of(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts_of(key)
            yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("suffix", ["html", "md", "jsonl", "csv"])
def test_files_hold_none_of_it_either(suffix: str, shop: str, tmp_path: Path) -> None:
    target = tmp_path / f"x\u202e.{suffix}"
    done = run("report" if suffix in ("html", "md") else "export", shop, "-o", str(target))
    assert not forged(done.stderr)
    assert not forged(target.read_text("utf-8"))


def test_other_commands_say_names_of_files_without_it(named: str, tmp_path: Path) -> None:
    out = tmp_path / EVIL.replace("/", "")
    for words in (
        ("cut", named, "-o", f"{out}.pcapng"),
        ("fixture", "make", named, "-o", f"{out}-fixtures"),
        ("fixture", "check", f"{out}-fixtures"),
        ("fixture", "check", f"{out}-gone"),
        ("diff", named, named),
        ("diff", f"{named}#1", f"{named}#2"),
        ("spark", named, "-o", f"{out}-tables", "--engine", "plain"),
        ("demo", "--save", f"{out}.pcap"),
        ("ls", named, "--columns", EVIL),
        ("ls", named, f"--{EVIL}"),
        (EVIL,),
        ("grammar", EVIL),
        ("fields", EVIL),
        ("error", EVIL),
        ("decode", EVIL, "1", "00"),
        ("replay", named, "--to", EVIL),
        ("replay", named, "--to", f"{EVIL}:1"),
        ("serve", named, "--listen", EVIL),
        ("proxy", "--upstream", EVIL),
    ):
        done = run(*words)
        assert done.stdout + done.stderr, words
        assert not forged(done.stdout), words
        assert not forged(done.stderr), words


def test_log_records_make_one_line_each() -> None:
    told = io.StringIO()
    handler = logging.StreamHandler(told)
    handler.setFormatter(Formatter())
    logger = logging.Logger("x")
    logger.addHandler(handler)
    logger.warning("a broker is called %s", EVIL)
    try:
        raise ValueError(EVIL)
    except ValueError:
        logger.exception("failed")
    assert not forged(told.getvalue())
    lines = told.getvalue().splitlines()
    assert all(line.startswith(("kafkascope: ", "  ")) for line in lines)


def test_a_line_feed_makes_no_line_of_ours() -> None:
    assert indented("a\nkafkascope: b\n\n    ^^") == "a\n  kafkascope: b\n\n    ^^"


def test_the_proxy_says_nothing_that_its_traffic_forges() -> None:
    """Brokers choose the host names in Metadata; a name that nobody can listen for is told."""
    code = (
        "import sys, logging; from kafkascope.analyzer.logs import log_to;"
        "from kafkascope.proxy.hub import Hub;"
        "log_to(sys.stderr, logging.WARNING); name = sys.stdin.read();"
        "Hub().once(name, f'cannot listen for {name}'); logging.getLogger('x').error('%s', name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=EVIL, capture_output=True, text=True, check=True
    )
    assert "cannot listen for" in done.stderr
    assert not forged(done.stderr)


def test_the_proxy_logs_through_the_one_formatter() -> None:
    called = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse((ROOT / "proxy" / "cli.py").read_text("utf-8")))
        if isinstance(node, ast.Call)
    }
    assert "log_to" in called


async def test_replay_names_missing_topics_without_what_a_terminal_obeys(named: str) -> None:
    """Against a broker that has none of the topics."""

    async with serving("libraries.pcap") as served:
        program = (sys.executable, "-m", "kafkascope.tui.cli", "replay", named)
        words = ("--to", f"{served.host}:{served.port}", "-v", "--speed", "max")
        process = await asyncio.create_subprocess_exec(
            *program, *words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        said = (await process.communicate())[0].decode()
    assert "the target has no topic" in said
    assert "[red]" in said
    assert not forged(said)


def test_lines_for_an_unbuffered_stdout_are_written_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    with path.open("wb", buffering=0) as raw:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, write_through=True))  # type: ignore[type-var]
        out = stdout_blocks()
        out.write(b"one\n")
        assert path.read_bytes() == b""
        out.flush()
        assert path.read_bytes() == b"one\n"
        del out
        sys.stdout.write("two\n")  # still open
        assert path.read_bytes() == b"one\ntwo\n"
        sys.stdout.detach()
