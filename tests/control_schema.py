"""Lines of the control channel, held against docs/control.schema.json, where no member may be
unknown."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from tests.kit.samples import DOCS

PATH = DOCS / "control.schema.json"
CLOSED = ("request.", "answer.", "event.", "refused", "rule", "connection", "held", "verdict")
"""What may have no further members: in the schema itself they may come."""


@cache
def strict() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(PATH.read_text())
    for name, each in schema["$defs"].items():
        # `verdict` is part of an answer, which is closed as a whole.
        if name.startswith(CLOSED) and name != "verdict":
            each["unevaluatedProperties"] = False
    return schema


def names(kind: str) -> set[str]:
    """What there is of "request", "answer" or "event"."""
    return {n.partition(".")[2] for n in strict()["$defs"] if n.startswith(f"{kind}.")}


def _check(name: str, message: dict[str, Any]) -> None:
    validator = validator_for(strict(), Draft202012Validator)
    whole = {**strict(), "anyOf": [{"$ref": f"#/$defs/{name}"}]}
    errors = [each.message[:300] for each in validator(whole).iter_errors(message)]
    assert not errors, (name, message, errors)


def check_request(message: dict[str, Any]) -> None:
    _check(f"request.{message.get('do')}", message)


def check_answer(request: dict[str, Any], message: dict[str, Any]) -> None:
    """`request`: the one that is answered."""
    _check(f"answer.{request['do']}" if message.get("ok") else "refused", message)


def check_event(message: dict[str, Any]) -> None:
    _check(f"event.{message['event']}", message)
