"""Names of values: error codes, enums, bit fields, timestamps, uuids."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from kafkascope.dissectors.messages import APIS
from kafkascope.dissectors.reference.codes import ENUMS, ERRORS
from kafkascope.dissectors.schema import Field

_NOTHING: Final[Mapping[str, Any]] = {}
_NOT_REQUESTED: Final = -(1 << 31)


def name_of(field: Field, value: Any, around: Mapping[str, Any] = _NOTHING) -> str:
    """Return the name of a field's value; empty when it has none, or when the value is its own
    name.

    `around`: the struct that contains the field; a feature's level is named by its feature.
    """
    if isinstance(value, bool):
        value = int(value) if field.enum else None
    if value is None:
        return ""
    if field.enum == "ErrorCode" or field.name == "error_code":
        error = ERRORS.get(value)
        return error.name if error else ""
    if field.enum == "AuthorizedOperations":
        return operations(value)
    if field.enum == "ZooKeeperPermissions":
        return permissions(value)
    if field.enum == "ApiKey":
        return APIS[value].name if value in APIS else ""
    if field.enum == "FeatureLevel":
        return feature_level(str(around.get("name") or around.get("feature")), value)
    if field.enum:
        known = str(UUID(bytes=bytes(value))) if isinstance(value, bytes) else value
        name = ENUMS[field.enum].get(known, "")
        if name and _plain(name) != _plain(str(value)):
            return name
    if field.unit == "time_ms" and isinstance(value, int):
        return time_text(value)
    return ""


def _plain(text: str) -> str:
    """Keep letters and digits only: "PreparingRebalance" and PREPARING_REBALANCE are the same."""
    return text.replace("_", "").replace("-", "").lower()


def operations(bits: int) -> str:
    """Return the operations that a bit field allows: bit n is AclOperation n (KIP-430)."""
    if bits == _NOT_REQUESTED:
        return "NOT_REQUESTED"
    names = ENUMS["AclOperation"]
    found = [names.get(n, str(n)) for n in range(32) if bits >> n & 1]
    return "|".join(found) or "none"


def permissions(bits: int) -> str:
    names = ENUMS["ZooKeeperPermissions"]
    if bits in names:
        return names[bits]
    return "|".join(
        name for bit, name in names.items() if isinstance(bit, int) and bits & bit == bit
    )


def time_text(milliseconds: int) -> str:
    """Return milliseconds since 1970 as ISO-8601 UTC; empty for -1 and beyond year 9999."""
    if milliseconds < 0:
        return ""
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


def feature_level(feature: str, level: int) -> str:
    """Return the name of a feature's level, such as 3.9-IV0 of metadata.version 21; empty when
    unknown."""
    return ENUMS.get(f"FeatureLevel {feature}", {}).get(level, "")
