"""Leaves out of a Protobuf schema what does not say how bytes are read: comments, defaults, and
options of others."""

from __future__ import annotations

import base64
from typing import Any

from kafkascope.analyzer.payloads.proto import grammar
from kafkascope.analyzer.payloads.proto.files import is_source, proto_of
from kafkascope.analyzer.payloads.proto.options import KEPT


def bare(text: str) -> str:
    """Return the schema without them, as source or base64 as it came; `PayloadError` where it is
    none."""
    proto = proto_of(text, "")
    if is_source(text):
        made = grammar.bare(text)
        # What is read of both has to be the same: nothing that matters was left out.
        if proto_of(made, "") == proto:
            return made
    _strip(proto)
    return base64.b64encode(proto.SerializeToString(deterministic=True)).decode()


def _strip(proto: Any) -> None:
    """Take defaults and options of others out of a descriptor, and all that is inside."""
    proto.DiscardUnknownFields()
    stack = [proto]
    while stack:
        one = stack.pop()
        for field, value in one.ListFields():
            if field.name in ("default_value", "json_name"):
                one.ClearField(field.name)
            elif field.name == "options":
                for option, _ in value.ListFields():
                    if option.name not in (*KEPT, "features"):
                        value.ClearField(option.name)
            elif field.type == field.TYPE_MESSAGE:
                many = hasattr(value, "append") or hasattr(value, "add")
                stack.extend(value if many else (value,))
