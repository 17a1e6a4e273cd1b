"""Lines of `export --full`: JSON whatever the bodies hold."""

from __future__ import annotations

import json
import math

import orjson
import pytest

from kafkascope.analyzer.exchanges.full import line_of
from kafkascope.dissectors.values import finite


def test_a_line_is_json_with_text_that_is_not_utf_8_beside_infinities() -> None:
    value = {"key": "\udcff", "value": finite(-math.inf), "records": orjson.Fragment(b"[1]")}
    line = line_of({"request": value})
    assert json.loads(line, parse_constant=pytest.fail) == {
        "request": {"key": "\udcff", "value": "-Infinity", "records": [1]}
    }
