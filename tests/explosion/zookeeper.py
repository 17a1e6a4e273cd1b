"""Conversations with ZooKeeper without end: nodes, paths, operations, events, sessions, counts."""

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from tests.explosion.turns import Turn, at_once
from tests.kit.wire import framed
from tests.kit.zookeeper import ACL, PASSWORD, stat, text

SESSION = 0x100
CREATE, DELETE, GET, SET, MULTI, CHILDREN, CREATE_2, WATCHES = 1, 2, 4, 5, 14, 8, 15, 101
NODE_EXISTS = -110
SUBSCRIBED = b'{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1"}'
"""Of a consumer before 0.9: what it reads."""
OVER = struct.pack(">i?i", -1, True, -1)
"""Ends the operations of a multi."""


def session(number: int, *, attach: bool = False) -> list[Turn]:
    """The handshake of a session."""
    asked = number if attach else 0
    return [
        (0, framed(struct.pack(">iqiq", 0, 0, 4000, asked) + PASSWORD + b"\0")),
        (1, framed(struct.pack(">iiq", 0, 4000, number) + PASSWORD + b"\0")),
    ]


def asked(xid: int, kind: int, body: bytes) -> bytes:
    return framed(struct.pack(">ii", xid, kind) + body)


def told(xid: int, zxid: int, body: bytes = b"", error: int = 0) -> bytes:
    return framed(struct.pack(">iqi", xid, zxid, error) + body)


def both(requests: Iterable[bytes], answers: Iterable[bytes]) -> list[Turn]:
    """A session in which all is asked at once, and then told."""
    return session(SESSION) + at_once(requests, answers)


def created(path: str, data: bytes = b"", flags: int = 0) -> bytes:
    """The body of a create."""
    return text(path) + text(data) + ACL + struct.pack(">i", flags)


def nodes(n: int) -> list[Turn]:
    """Very many nodes of one parent, each created."""
    return made([(f"/a/n{each}", b"") for each in range(n)])


def deep(n: int) -> list[Turn]:
    """Nodes that are each the child of the one before, as far as a path may reach."""
    return made([("/a" * (1 + each % 250) + f"/n{each}", b"") for each in range(n)], flags=0)


def deep_path(n: int) -> list[Turn]:
    """One path of very many parts, read and told of again and again."""
    path = "/a" * n
    turns = both(
        (asked(each, GET, text(path) + b"\1") for each in range(1, 20)),
        (told(each, each, text(b"x") + stat(each, size=1)) for each in range(1, 20)),
    )
    return [*turns, (1, told(-1, -1, struct.pack(">ii", 3, 3) + text(path)) * 20)]


def operations(n: int) -> list[Turn]:
    """A multi of very many operations, and as many results."""
    made = b"".join(
        struct.pack(">i?i", CREATE, False, -1) + created(f"/a/n{each}") for each in range(n)
    )
    results = b"".join(
        struct.pack(">i?i", CREATE, False, 0) + text(f"/a/n{each}") for each in range(n)
    )
    return both([asked(1, MULTI, made + OVER)], [told(1, 7, results + OVER)])


def many_multis(n: int) -> list[Turn]:
    """Operations that each check a node and change it, many to a multi."""
    one = struct.pack(">i?i", 13, False, -1) + text("/a") + struct.pack(">i", 1)
    one += struct.pack(">i?i", SET, False, -1) + text("/a") + text(b"x") + struct.pack(">i", -1)
    done = struct.pack(">i?i", 13, False, 0) + struct.pack(">i?i", SET, False, 0) + stat(1)
    return both(
        (asked(each, MULTI, one * 10 + OVER) for each in range(1, n)),
        (told(each, each, done * 10 + OVER) for each in range(1, n)),
    )


def children(n: int) -> list[Turn]:
    """A list of very many children, told twice."""
    body = struct.pack(">i", n) + b"".join(text(f"n{each}") for each in range(n))
    return both(
        (asked(each, CHILDREN, text("/brokers/topics") + b"\0") for each in (1, 2)),
        (told(each, each, body) for each in (1, 2)),
    )


def empty_children(n: int) -> list[Turn]:
    """A list of names without a letter: four bytes each."""
    return both(
        [asked(1, CHILDREN, text("/brokers/topics") + b"\0")],
        [told(1, 1, struct.pack(">i", n) + bytes(4 * n))],
    )


def false_counts(n: int) -> list[Turn]:
    """Answers that say to have very many items, and have none."""
    return both(
        (asked(each, CHILDREN, text("/a") + b"\0") for each in range(1, n)),
        (told(each, 1, struct.pack(">i", 0x7FFF_FFFF)) for each in range(1, n)),
    )


def watches(n: int) -> list[Turn]:
    """All watches of a session that comes back, in one request."""
    paths = struct.pack(">i", n) + b"".join(text(f"/a/n{each}") for each in range(n))
    body = struct.pack(">q", 1) + paths + struct.pack(">ii", 0, 0)
    return both([asked(-8, WATCHES, body)], [told(-8, 1)])


def events(n: int) -> list[Turn]:
    """Watch events that nobody waited for."""
    made = (
        told(-1, -1, struct.pack(">ii", 1 + each % 4, 3) + text(f"/a/n{each}")) for each in range(n)
    )
    return both([], made)


def sessions(n: int) -> Iterator[list[Turn]]:
    """Sessions that each have an ephemeral node, and go on elsewhere again and again."""
    for each in range(n):
        number = SESSION + each // 5
        yield [
            *session(number, attach=each % 5 > 0),
            (0, asked(1, CREATE, created(f"/brokers/ids/{each}", b"{}", 1))),
            (1, told(1, each, text(f"/brokers/ids/{each}"))),
        ]


def attached(n: int) -> Iterator[list[Turn]]:
    """One session that comes back without end, and is refused every other time."""
    for each in range(n):
        turns = session(SESSION, attach=each > 0)
        if each % 2:
            turns[1] = 1, framed(struct.pack(">iiq", 0, 0, 0) + PASSWORD + b"\0")
        yield turns


def elections(n: int) -> list[Turn]:
    """A node that is created and deleted by turns, as a controller's."""
    data = b'{"version":1,"brokerid":%d,"timestamp":"1"}'
    return both(
        chain.from_iterable(
            (
                asked(2 * each + 1, CREATE, created("/controller", data % each, 1)),
                asked(2 * each + 2, DELETE, text("/controller") + struct.pack(">i", -1)),
            )
            for each in range(n)
        ),
        chain.from_iterable(
            (
                told(2 * each + 1, 2 * each + 1, text("/controller")),
                told(2 * each + 2, 2 * each + 2),
            )
            for each in range(n)
        ),
    )


def partitions(n: int) -> list[Turn]:
    """A topic's node with very many partitions in JSON, read by all."""
    data = json.dumps({"version": 2, "partitions": {str(each): [1, 2] for each in range(n)}})
    path = text("/brokers/topics/t")
    return both(
        (asked(each, GET, path + b"\0") for each in range(1, 5)),
        (told(each, 1, text(data) + stat(1, size=len(data))) for each in range(1, 5)),
    )


def states(n: int) -> list[Turn]:
    """States of very many partitions, set one by one."""
    data = b'{"controller_epoch":1,"leader":%d,"version":1,"leader_epoch":%d,"isr":[1]}'
    paths = [f"/brokers/topics/t{each % 1000}/partitions/{each}/state" for each in range(n)]
    return both(
        (
            asked(each + 1, SET, text(path) + text(data % (each, each)) + struct.pack(">i", -1))
            for each, path in enumerate(paths)
        ),
        (told(each + 1, each + 1, stat(each + 1, version=1, born=1)) for each in range(n)),
    )


def made(nodes: Sequence[tuple[str, bytes]], flags: int = 1) -> list[Turn]:
    """A session that creates nodes (path, data); one that is there is refused."""
    first: dict[str, int] = {}
    return both(
        (asked(at, CREATE, created(*each, flags)) for at, each in enumerate(nodes, 1)),
        (
            told(at + 1, at + 1, text(path))
            if first.setdefault(path, at) == at
            else told(at + 1, at + 1, b"", NODE_EXISTS)
            for at, (path, _) in enumerate(nodes)
        ),
    )


def consumers(n: int) -> list[Turn]:
    """Consumers of 0.8: very many members and owners of a group."""
    return made(
        [
            node
            for each in range(n)
            for node in (
                (f"/consumers/g/ids/g_h{each}", SUBSCRIBED),
                (f"/consumers/g/owners/t/{each}", b"g_h%d-0" % each),
            )
        ]
    )


def groups(n: int) -> list[Turn]:
    """Very many groups of consumers of 0.8, each with a member that claims in vain what it owns."""
    return made(
        [
            node
            for each in range(n)
            for node in (
                (f"/consumers/g{each}/ids/g{each}_h", SUBSCRIBED),
                *[(f"/consumers/g{each}/owners/t/0", b"g%d_h-0" % each)] * 8,
            )
        ]
    )
