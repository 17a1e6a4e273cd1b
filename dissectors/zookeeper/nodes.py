"""Contents of ZooKeeper's nodes: JSON, numbers and texts that Kafka writes; secrets among them."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.reference.config_secrets import holds_secret, is_sensitive
from kafkascope.dissectors.zookeeper.paths import place_of

HIDDEN: Final = "********"

_CREDENTIALS: Final = re.compile(
    rb"salt=|stored_key=|server_key=|SCRAM-SHA-|hmac|passw|secret", re.IGNORECASE
)
"""Found in what holds, or may hold, a secret, and is no JSON that can be parsed."""
_SCRAM: Final = re.compile(r"(?:salt|stored_key|server_key)=")


def json_of(data: bytes | None) -> Any:
    """Return the JSON object or array that a node holds; None where it holds something else."""
    if not data or data[:1] not in (b"{", b"[") or len(data) > LIMITS.znode_bytes:
        return None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def holds_credentials(data: bytes | None, path: str | None = None) -> bool:
    """Return whether a node holds a secret: SCRAM credentials of a user, a password among configs,
    a delegation token."""
    if not data:
        return False
    if path is not None and place_of(path).what == "delegation token":
        return True
    found = json_of(data)
    if found is not None:
        return bool(found != without_secrets(found))
    return _CREDENTIALS.search(data) is not None or holds_secret(data.decode("utf-8", "replace"))


def without_secrets(value: Any, name: str = "") -> Any:
    """Return a value of a node's JSON in which secrets are hidden."""
    if isinstance(value, dict):
        return {key: without_secrets(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [without_secrets(each, name) for each in value]
    if isinstance(value, str) and (
        is_sensitive(name)
        or _SCRAM.search(value)
        or name.startswith("SCRAM-")
        or holds_secret(value)
    ):
        return HIDDEN
    return value
