"""What stands behind a value in a tree: its own name, or what the session knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkascope.analyzer.bodies.nodes import NodeAddresses
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.reference.names import name_of
from kafkascope.dissectors.schema import Field
from kafkascope.dissectors.values import Uuid


class Labels:
    """Names of error codes, enums and times; of topics by id; addresses of nodes by id."""

    def __init__(self, names: TopicNames | None = None, nodes: NodeAddresses | None = None) -> None:
        self._names = names
        self._nodes = nodes

    def of(self, field: Field, value: Any, around: Mapping[str, Any]) -> str:
        """The label of a field's value, or of an element of it; empty when there is none.

        `around`: the struct that the field stands in.
        """
        if isinstance(value, list | dict):
            return ""
        if name := name_of(field, value, around):
            return name
        if self._nodes is not None and (field.entity or field.subject) == "brokerId":
            return (self._nodes.get(value) or "") if isinstance(value, int) else ""
        if self._names is not None and isinstance(value, Uuid) and "topic_id" in field.name:
            return self._names.get(value) or ""
        return ""


PLAIN = Labels()
"""Knows nothing of any session."""
