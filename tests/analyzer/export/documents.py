"""AsyncAPI documents, held against their JSON Schema."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator


@cache
def validator() -> Draft7Validator:
    packed = Path(__file__).with_name("asyncapi-3.0.0.json.gz").read_bytes()
    return Draft7Validator(json.loads(gzip.decompress(packed)))


def held(document: dict[str, Any]) -> dict[str, Any]:
    errors = [f"{error.json_path}: {error.message}" for error in validator().iter_errors(document)]
    assert not errors
    for operation in document.get("operations", {}).values():
        part: Any = document
        for name in operation["channel"]["$ref"].removeprefix("#/").split("/"):
            part = part[name]
    return document
