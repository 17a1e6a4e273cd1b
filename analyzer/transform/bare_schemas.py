"""Schemas without what people wrote into them: docs, comments, defaults, examples. The rest stays:
values are decoded as before."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from kafkascope.analyzer.payloads.model import PayloadError, Schema

_OF: Final = {"avro": "avro", "protobuf": "proto", "json": "json"}
"""Room of each format."""


class BareSchemas:
    """The bare form of schemas; those that cannot be read are left out and counted."""

    def __init__(self) -> None:
        self.left_out = 0

    def of(self, schemas: Iterable[Schema]) -> Iterator[Schema]:
        """Yield each schema bare, without the place that it came from."""
        for schema in schemas:
            made = importlib.import_module(
                f"kafkascope.analyzer.payloads.{_OF[schema.format]}.bare"
            )
            try:
                text = made.bare(schema.text)
            except PayloadError:
                self.left_out += 1
                continue
            yield replace(schema, text=text, origin="")
