"""Bytes of one frame <-> values. Stateless; knows nothing of files, connections or time.

One declaration per message (`messages/`), one layout per version (`layout`), and from it the
reader, the writer, the reference Struct, the tree, the grammar and the JSON form. Names load on
first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkascope.dissectors.codec.tree import annotate
    from kafkascope.dissectors.errors import DissectError
    from kafkascope.dissectors.registry import (
        APIS,
        decode_body,
        decode_request,
        decode_response,
        encode_body,
        layout_of,
        message,
    )

__all__ = [
    "APIS",
    "DissectError",
    "annotate",
    "decode_body",
    "decode_request",
    "decode_response",
    "encode_body",
    "layout_of",
    "message",
]

_HOMES = {"DissectError": "errors", "annotate": "codec.tree"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    home = importlib.import_module(f"kafkascope.dissectors.{_HOMES.get(name, 'registry')}")
    return getattr(home, name)
