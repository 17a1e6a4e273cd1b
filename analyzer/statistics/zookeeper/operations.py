"""Operations on znodes in an exchange with ZooKeeper, and their results. Without state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.dissectors.zookeeper.nodes import holds_credentials
from kafkascope.dissectors.zookeeper.types import BASE

EXISTS: Final = 3
GET_DATA: Final = 4
SET_DATA: Final = 5
GET_ACL: Final = 6
SET_ACL: Final = 7
GET_CHILDREN: Final = 8
GET_CHILDREN2: Final = 12
CREATES: Final = frozenset({1, 15, 19, 21})
DELETES: Final = frozenset({2, 20})
WRITES: Final = CREATES | DELETES | {SET_DATA, SET_ACL}
READS: Final = frozenset({EXISTS, GET_DATA, GET_ACL, GET_CHILDREN, GET_CHILDREN2})
EPHEMERAL: Final = frozenset({1, 3})

NONODE: Final = -101
NODEEXISTS: Final = -110


class ZnodeOperation(NamedTuple):
    """A request about a znode, or one operation of a multi, with its result."""

    kind: int
    path: str
    """Path in the response, because it has the numbers of sequential nodes."""
    error: int
    """0: done. Operations of a multi that failed only because of another one are left out."""
    data: bytes | None = None
    flags: int = 0
    stat: dict[str, Any] | None = None
    children: tuple[str, ...] | None = None


def operations_of(exchange: Exchange) -> Iterator[ZnodeOperation]:
    """Yield operations and results of an answered request."""
    response = exchange.response
    request, kind = exchange.request_body, exchange.api_key
    if response is None or request is None or kind is None or response.decoded is None:
        return
    body = response.decoded.body
    error = response.decoded.header.get("err", 0)
    if "operations" in request:
        if not error:
            yield from _multi(request["operations"] or (), body.get("results") or ())
        return
    path = request.get("path")
    if not path or kind - BASE not in WRITES | READS:
        return
    yield _operation(kind - BASE, path, request, body, error)


def _multi(requests: Any, results: Any) -> Iterator[ZnodeOperation]:
    """Yield the operations of a multi; of a failed multi, the operation that made it fail."""
    for request, result in zip(requests, results, strict=False):
        path = request.get("path")
        error = result.get("error") or 0
        failed = result["type"] == -1
        if path and not (failed and error in (0, -2)) and request["type"] in WRITES | READS:
            yield _operation(request["type"], path, request, result, error)


def _operation(
    kind: int, path: str, request: dict[str, Any], response: dict[str, Any], error: int
) -> ZnodeOperation:
    if error:
        return ZnodeOperation(kind, path, error)
    stat = response.get("stat")
    if kind in CREATES:
        made = response.get("path") or path
        return ZnodeOperation(kind, made, 0, request.get("data"), request.get("flags", 0), stat)
    if kind == SET_DATA:
        return ZnodeOperation(kind, path, 0, request.get("data"), 0, stat)
    if kind == GET_DATA:
        return ZnodeOperation(kind, path, 0, response.get("data"), 0, stat)
    names = response.get("children")
    listed = None if names is None else tuple(name for name in names if name is not None)
    return ZnodeOperation(kind, path, 0, None, 0, stat, listed)


def text_of(data: bytes | None, path: str) -> str | None:
    """Return the data of a znode as one short line without secrets; None for binary data."""
    from kafkascope.dissectors.embedded.nodes import decode  # loaded only if needed

    if not data:
        return None
    found = decode(data[: 1 << 16] if len(data) > 1 << 16 else data, path)
    if found is not None:
        body = found.body
        text = body if isinstance(body, str) else orjson.dumps(body).decode()
    elif holds_credentials(data, path):
        return None
    else:
        try:
            text = data[: 4 * LIMITS.znode_chars].decode()
        except UnicodeDecodeError:
            return None
        if not text.isprintable():
            return None
    return text if len(text) <= LIMITS.znode_chars else text[: LIMITS.znode_chars] + "…"
