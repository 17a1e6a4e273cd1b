"""Names of the fields that messages of a Protobuf file may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkascope.analyzer.payloads.paths import Path, below
from kafkascope.analyzer.payloads.proto.files import proto_of


def field_paths(text: str) -> Iterator[Path]:
    """Yield the paths of fields in any message of the file, as far as the text alone defines them;
    `PayloadError`."""
    file = proto_of(text, "")
    messages: dict[str, Any] = {}
    waiting = list(file.message_type)
    while waiting:
        message = waiting.pop()
        messages.setdefault(message.name, message)
        waiting += message.nested_type

    def fields(message: Any) -> Iterator[tuple[str, Any]]:
        for each in message.field:
            # What a name means depends on where it stands; for a suggestion its end will do.
            inner = messages.get(each.type_name.rpartition(".")[2])
            if inner is not None and inner.options.map_entry:
                inner = None  # the names in a map are the values' own
            yield each.name, inner

    return below(list(file.message_type), lambda node: () if node is None else fields(node))
