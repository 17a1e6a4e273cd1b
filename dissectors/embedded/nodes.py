"""Contents of ZooKeeper's nodes, by the path of the node and the bytes themselves."""

from __future__ import annotations

import re

from kafkascope.dissectors.embedded.model import Embedded
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.zookeeper.nodes import (
    HIDDEN,
    holds_credentials,
    json_of,
    without_secrets,
)
from kafkascope.dissectors.zookeeper.paths import place_of


def decode(data: bytes, path: str) -> Embedded | None:
    """Decode the data of a node, secrets hidden; None for bytes of unknown content."""
    what = place_of(path).what if path else ""
    if what == "delegation token":
        return Embedded(what, HIDDEN)
    found = json_of(data)
    if found is not None:
        return Embedded(what or "JSON", without_secrets(found))
    if not what or len(data) > LIMITS.znode_bytes:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if holds_credentials(data):
        return Embedded(what, HIDDEN)
    return Embedded(what, int(text) if re.fullmatch(r"-?\d{1,18}", text, re.ASCII) else text)
