"""The examples of docs/library.md run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkascope as ks
from kafkascope.library.tables import TABLES

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "captures" / "samples"
TEXT = (ROOT / "docs" / "library.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with ks.Broker(SAMPLES / "libraries.pcap") as broker:
        yield broker.bootstrap


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(
    example: str,
    bootstrap: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prod.pcapng").write_bytes((SAMPLES / "demo.pcap.zst").read_bytes())
    code = compile(example.replace("broker:9092", bootstrap), "docs/library.md", "exec")
    exec(code, {"__name__": "example"})  # the page is ours
    out, err = capsys.readouterr()
    assert err == ""
    assert out or "assert" in example or "to_arrow" in example


def test_the_page_has_every_name() -> None:
    text = TEXT.replace("`", " ")
    for name in ks.__all__:
        assert re.search(rf"(ks\.|\b){name}\b", text), name
    for name in TABLES:
        assert f"`{name}`" in TEXT, name
    tree = TEXT.partition("    Error\n")[2].partition("\nDamage")[0]
    for name in ks.__all__:
        found = getattr(ks, name)
        if isinstance(found, type) and issubclass(found, ks.Error) and found is not ks.Error:
            assert name in tree, name
