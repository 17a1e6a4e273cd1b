"""Both ways decrypt TLS alike, and as `ls` does, whatever task has which connection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafkascope.captures.inputs.keylogs import read_key_logs
from tests.analyzer.pipeline.kit import Apart, check_against_export, made

CAPTURES = Path(__file__).parents[1] / "captures" / "tls"
TRUTHS = sorted(CAPTURES.glob("*.truth.json"))
MORE = {"frames": True, "records": True}


@pytest.mark.parametrize("path", TRUTHS, ids=[each.name.partition(".")[0] for each in TRUTHS])
def test_real_traffic(path: Path, tmp_path: Path) -> None:
    truth: dict[str, Any] = json.loads(path.read_text())
    capture = str(CAPTURES / truth["capture"])
    logs = [] if truth.get("keys_inside") else [CAPTURES / truth["keys"]]
    expected, _ = made([capture], tmp_path / "plain", keys=read_key_logs(logs), **MORE)
    check_against_export(tmp_path / "plain", [capture], keylog=logs)
    for number, spread in enumerate((0, 2)):
        out = tmp_path / f"apart{number}"
        engine = Apart(spread=spread)
        found, _ = made([capture], out, engine, 5_000, keys=read_key_logs(logs), **MORE)
        assert found == expected
