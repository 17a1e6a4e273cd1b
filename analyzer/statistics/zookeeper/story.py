"""Histories of nodes and sessions: facts about each, put in order.

No message ends a session that dies: nodes that go with it show it, a server that refuses it, or
silence longer than its timeout.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, Final, Literal, TypeAlias

from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import Line, listed, picked
from kafkascope.analyzer.statistics.zookeeper.ensembles import Ensemble
from kafkascope.analyzer.statistics.zookeeper.model import Znode, ZnodeChange, label
from kafkascope.dissectors.reference.zookeeper import ZOOKEEPER
from kafkascope.dissectors.zookeeper.nodes import json_of
from kafkascope.dissectors.zookeeper.paths import place_of
from kafkascope.times import MS

# In place of a container's owner.
CONTAINER: Final = -(1 << 63)
EPHEMERAL: Final = frozenset({1, 3})
ORDER: Final = {"created": 0, "changed": 1, "deleted": 2}


Ending: TypeAlias = Literal["deleted", "closed", "expired", "told", ""]
"""How a node went: by a request, with its session, which was closed or died, or for a reason that
was not seen; empty: it is there."""
SessionState: TypeAlias = Literal["open", "closed", "expired", "refused", "silent"]
"""silent: no answer for longer than its timeout; refused: a request to resume it failed, and it
lived on."""


@dataclass(slots=True)
class ZnodeLife:
    """A node from its creation to its end."""

    path: str
    zxid: int
    change: ZnodeChange
    begin_ns: int
    changes: list[tuple[int, ZnodeChange]] = field(default_factory=list)
    """zxid and change, of its data."""
    end_ns: int | None = None
    end_zxid: int | None = None
    ending: Ending = ""
    end: ZnodeChange | None = None

    @property
    def seen(self) -> bool:
        """Whether its creation is known, from its request or a later answer."""
        return self.change.first is not None

    @property
    def owner(self) -> int:
        """The session that it goes with; 0 for none."""
        owner, mode = self.change.owner or 0, self.change.mode
        if owner == CONTAINER or (mode is not None and mode not in EPHEMERAL):
            return 0
        return owner

    @property
    def text(self) -> str | None:
        """The data that it had last, as far as they are known."""
        for _, change in reversed(self.changes):
            if change.size is not None:
                return change.text
        return self.change.text

    @property
    def mode(self) -> str:
        """persistent, ephemeral, ..., in the words of the create."""
        if self.change.mode is not None:
            modes = ZOOKEEPER["ZooKeeperCreateMode"]
            return modes.get(self.change.mode, str(self.change.mode)).lower()
        if self.change.owner is None:
            return ""
        if self.change.owner == CONTAINER:
            return "container"
        return "ephemeral" if self.change.owner else "persistent"


def fields_of(text: str | None) -> dict[str, Any]:
    """Return the fields of a node's data; none of what is no JSON object."""
    found = json_of((text or "").encode())
    return found if isinstance(found, dict) else {}


def time_of(change: ZnodeChange) -> int:
    """Return when a change happened: by its answer, or the server's clock."""
    if change.time_ns is not None:
        return change.time_ns
    if change.clock_ms:
        return change.clock_ms * MS
    return change.told_ns or 0


class TreeStory:
    """Everything about an ensemble, in order."""

    def __init__(self, ensemble: Ensemble, end_ns: int) -> None:
        """`end_ns`: the last word of any server in the capture."""
        self._ensemble = ensemble
        self.servers = ensemble.servers
        self.doubtful = ensemble.doubtful
        self.end_ns = end_ns

    @property
    def name(self) -> str:
        """The addresses of its servers, as far as they were seen."""
        more = len(self.servers) - LIMITS.named_servers
        shown = ", ".join(self.servers[: LIMITS.named_servers])
        return f"{shown}, and {more} more" if more > 0 else shown

    @property
    def size(self) -> int:
        return len(self._ensemble.nodes)

    def has(self, session: int) -> bool:
        return (session,) in self._ensemble.sessions

    @cached_property
    def lives(self) -> Mapping[str, list[ZnodeLife]]:
        """Lives of each node with a known zxid, in order."""
        by_path = by_key(
            (str(path), (zxid, kind, change))
            for (path, zxid, kind), change in self._ensemble.changes.items()
        )
        deletions = (event for event in self._ensemble.events if event.kind == "NodeDeleted")
        deleted = by_key((str(event.about["path"]), event.time_ns) for event in deletions)
        found = {}
        for path, changes in by_path.items():
            changes.sort(key=lambda each: (each[0], ORDER[each[1]]))
            lives = list(_lives(path, changes))
            for at, life in enumerate(lives):
                if life.end_ns is None:
                    then = lives[at + 1] if at + 1 < len(lives) else None
                    self._ends(life, then, deleted.get(path, []))
            found[path] = lives
        return found

    def _ends(self, life: ZnodeLife, then: ZnodeLife | None, deletions: list[int]) -> None:
        """Find out how a life ended whose deletion was not seen."""
        session = self._ensemble.sessions.get((life.owner,)) if life.owner else None
        if session is not None and session.closed is not None:
            time_ns, zxid = session.closed
            if zxid > life.zxid and (then is None or zxid < then.zxid):
                life.end_ns, life.end_zxid, life.ending = time_ns, zxid, "closed"
                return
        until_ns = then.begin_ns if then is not None else None
        node = self._ensemble.nodes.get((life.path,))
        times = deletions[bisect_left(deletions, life.begin_ns) :][:1]
        if node is not None:
            times += [each for each in (node.missing_ns, node.deleted_ns) if each is not None]
        parent, _, name = life.path.rpartition("/")
        above = self._ensemble.nodes.get((parent or "/",))
        if above is not None and above.children is not None and name not in above.children[1]:
            times.append(above.children[0])
        there_ns = node.exists_ns if node is not None and then is None else None
        times = [
            each
            for each in times
            if each > life.begin_ns
            and (until_ns is None or each <= until_ns)
            and (there_ns is None or each >= there_ns)
        ]
        if times:
            life.end_ns = min(times)
        elif then is None:
            return
        # Its session had no word any more when the node had gone.
        dead = (
            session is not None and life.end_ns is not None and (session.last_ns or 0) < life.end_ns
        )
        life.ending = "expired" if dead else "told"

    @cached_property
    def owned(self) -> Mapping[int, list[ZnodeLife]]:
        every = (life for lives in self.lives.values() for life in lives)
        found = by_key((life.owner, life) for life in every if life.owner)
        for lives in found.values():
            lives.sort(key=lambda life: (life.begin_ns, life.path))
        return found

    # --- sessions

    def state(self, id_: int) -> tuple[SessionState, int | None]:
        """Return what became of a session, and when it ended."""
        session = self._ensemble.sessions[(id_,)]
        if session.closed is not None:
            return "closed", session.closed[0]
        last_ns = session.last_ns or 0
        went = [
            life.end_ns
            for life in self.owned.get(id_, ())
            if life.ending == "expired" and life.end_ns is not None
        ]
        refused_ns = session.refused_at[0] if session.refused_at is not None else None
        if refused_ns is not None and refused_ns > last_ns:
            went.append(refused_ns)
        if went:
            return "expired", min(went)
        if session.expired:
            return "expired", last_ns
        timeout_ms = session.given[1] if session.given is not None else 0
        if timeout_ms and self.end_ns - last_ns > timeout_ms * MS:
            return "silent", None
        return ("refused" if refused_ns is not None and not session.given else "open"), None

    def lost(self, id_: int) -> list[ZnodeLife]:
        """Return the ephemeral nodes that went because a session died."""
        return [life for life in self.owned.get(id_, ()) if life.ending == "expired"]

    def who(self, id_: int) -> list[str]:
        """Return as what a session registered itself: `broker 1`, `controller`."""
        found: dict[str, None] = {}
        for life in self.owned.get(id_, ()):
            word = _registered(life.path)
            if word:
                found[word] = None
        return list(found)[: LIMITS.named_znodes]

    @listed(lambda line: (line["first"] or line["ended"] or 0, line["zk_session"] or ""))
    def session_lines(self) -> Iterator[Line]:
        for (id_,), session in self._ensemble.sessions.items():
            state, ended_ns = self.state(id_)
            owned = self.owned.get(id_, [])
            addresses = sorted({address for address, _ in session.clients})
            yield {
                "ensemble": self.name,
                "zk_session": label(id_),
                "id": id_,
                "client_address": ", ".join(session.hosts),
                "addresses": addresses[: LIMITS.named_znodes],
                "who": self.who(id_),
                "user": ", ".join(session.users),
                "state": state,
                "created": None if session.created is None else session.created[0],
                **picked(
                    *(session, "first_ns", "last_ns", "attached", "refused", "moved"),
                    *("requests", "failed", "events"),
                ),
                "ended": ended_ns,
                "session_timeout": None if session.given is None else session.given[1] * MS,
                "requested_timeout": None if session.asked is None else session.asked[1] * MS,
                "connections": len(session.clients),
                "servers": list(session.servers),
                "max_latency": session.latency_ns,
                "ephemerals": [life.path for life in owned][: LIMITS.named_znodes],
                "lost_nodes": [life.path for life in self.lost(id_)][: LIMITS.named_znodes],
                "number": None if session.created is None else session.created[1],
            }

    # --- nodes

    def node_lines(self) -> list[Line]:
        """Return one line per node, in the order of their paths; those beyond the limit are one."""
        lines = [self._node_line(path, node) for (path,), node in self._ensemble.nodes.items()]
        if self._ensemble.nodes.others is not None:
            lines.append(self._node_line("(others)", self._ensemble.nodes.others))
        return lines

    def _node_line(self, path: str, node: Znode) -> Line:
        lives = self.lives.get(path, [])
        life = lives[-1] if lives else None
        state, gone_ns = _state(node, life)
        changed: int | None = None
        _, version, size, children = node.latest or (None,) * 4
        for each in (life.change, *(change for _, change in life.changes)) if life else ():
            changed = None if life is None or each is life.change else time_of(each)
            version = each.version if each.version is not None else version
            size = each.size if each.size is not None else size
        return {
            "ensemble": self.name,
            "path": path,
            "what": place_of(path).what,
            "state": state,
            "mode": "" if life is None else life.mode,
            "owner": None if life is None else label(life.owner),
            "creator": None if life is None else life.change.origin()["zk_session"],
            "created": life.begin_ns if life is not None and life.seen else None,
            "changed": changed,
            "deleted": gone_ns,
            "version": version,
            "changes": sum(len(each.changes) for each in lives),
            "lives": len(lives),
            "children": children,
            "bytes": size,
            **picked(
                *(node, "reads", "writes", "failed", "existed", "missing", "events"),
                *("first_ns", "last_ns"),
            ),
            "number": None if node.first is None else node.first[1],
            "data": None if life is None else life.text,
        }

    def history(self, path: str | None = None) -> list[Line]:
        found = self.lives if path is None else {path: self.lives.get(path, [])}
        lines = [
            line for lives in found.values() for life in lives for line in self._life_lines(life)
        ]
        lines.sort(key=lambda line: (line["time"], line["zxid"] or 0, line["path"]))
        return lines

    def _life_lines(self, life: ZnodeLife) -> Iterator[Line]:
        if life.seen:
            yield self._line(life, life.zxid, "created", life.change, life.begin_ns)
        last_ns = life.begin_ns
        for zxid, change in life.changes:
            # The server's clock may be another than that of the capture; zxids are in order.
            last_ns = max(last_ns, time_of(change))
            yield self._line(life, zxid, "changed", change, last_ns)
        if life.ending and life.end_ns is not None:
            yield self._line(life, life.end_zxid, "deleted", life.end, life.end_ns)

    def _line(
        self, life: ZnodeLife, zxid: int | None, kind: str, change: ZnodeChange | None, time_ns: int
    ) -> Line:
        change = change or ZnodeChange()
        how = "" if change.by is not None else "seen later"
        session = change.by[0] if change.by is not None else None
        if kind == "deleted" and life.ending in ("closed", "expired"):
            how, session = f"its session {life.ending}", life.owner
        return {
            **change.origin(),
            "ensemble": self.name,
            "time": time_ns,
            "path": life.path,
            "what": place_of(life.path).what,
            "change": kind,
            "how": how,
            "mode": life.mode if kind == "created" else "",
            "version": change.version,
            "zxid": None if zxid is None else f"{zxid:#x}",
            "zk_session": label(session),
            "who": self.who(session) if session else [],
            "bytes": change.size,
            "data": change.text,
        }

    @listed(lambda line: (line["time"], line["path"]))
    def elections(self) -> Iterator[Line]:
        for path, lives in self.lives.items():
            place = place_of(path)
            if place.what != "controller":
                continue
            epochs = self._epochs(f"{place.chroot}/controller_epoch")
            for at, life in enumerate(lives):
                until = lives[at + 1].zxid if at + 1 < len(lives) else None
                # The first epoch that was written from its zxid on.
                behind = [epoch for at, epoch in epochs if life.zxid <= at < (until or inf)]
                number = fields_of(life.change.text).get("brokerid")
                line = {
                    **life.change.origin(),
                    "ensemble": self.name,
                    "time": life.begin_ns,
                    "controller": number if isinstance(number, int) else None,
                    "controller_epoch": behind[0] if behind else None,
                    "ended": life.end_ns,
                    "end": _END[life.ending],
                    "path": path,
                }
                yield line | {"zk_session": label(life.owner) or line["zk_session"]}

    @listed(lambda line: (line["created"], line["path"]))
    def topics(self) -> Iterator[Line]:
        for path, lives in self.lives.items():
            place = place_of(path)
            if place.what != "topic":
                continue
            topic = place.first("topicName")
            wishes = self.lives.get(f"{place.chroot}/admin/delete_topics/{topic}", ())
            for at, life in enumerate(lives):
                end_ns = lives[at + 1].begin_ns if at + 1 < len(lives) else None
                deletions = [
                    wish.begin_ns
                    for wish in wishes
                    if wish.begin_ns >= life.begin_ns and (end_ns is None or wish.begin_ns < end_ns)
                ]
                partitions = fields_of(life.text).get("partitions")
                yield {
                    **life.change.origin(),
                    "ensemble": self.name,
                    "topic": topic,
                    "created": life.begin_ns,
                    "partitions": len(partitions) if isinstance(partitions, dict) else None,
                    "changes": len(life.changes),
                    "deletion_requested": min(deletions, default=None),
                    "deleted": life.end_ns,
                    "path": path,
                }

    def _epochs(self, path: str) -> list[tuple[int, int]]:
        found = []
        for life in self.lives.get(path, ()):
            for zxid, change in ((life.zxid, life.change), *life.changes):
                if change.text and change.text.isdecimal():
                    found.append((zxid, int(change.text)))
        return sorted(found)


_END: Final[dict[str, str]] = {
    "": "",
    "deleted": "deleted",
    "closed": "session closed",
    "expired": "session expired",
    "told": "gone",
}


def _lives(path: str, changes: list[tuple[int, str, ZnodeChange]]) -> Iterator[ZnodeLife]:
    """Yield lives of a node from its changes in their order. What a change or deletion is of whose
    creation was not seen has a life of its own."""
    life: ZnodeLife | None = None
    for zxid, kind, change in changes:
        if kind == "created":
            if life is not None:
                yield life
            life = ZnodeLife(path, zxid, change, time_of(change))
            continue
        if life is None or life.end is not None:
            if life is not None:
                yield life
            life = ZnodeLife(path, zxid, ZnodeChange(), time_of(change))
        if kind == "changed":
            life.changes.append((zxid, change))
        else:
            life.end, life.end_ns, life.end_zxid = change, time_of(change), zxid
            life.ending = "deleted"
    if life is not None:
        yield life


def _state(node: Znode, life: ZnodeLife | None) -> tuple[str, int | None]:
    """Return whether a node is there, and since when it is gone."""
    there_ns, missing_ns = node.exists_ns, max(node.missing_ns or 0, node.deleted_ns or 0)
    if life is not None and life.ending:
        if there_ns is None or life.end_ns is None or there_ns <= life.end_ns:
            return "gone", life.end_ns
        return "there", None
    if there_ns is None and life is None:
        return ("gone" if node.deleted_ns else "not there" if missing_ns else "unknown"), None
    if missing_ns > (there_ns or 0):
        return "gone", missing_ns
    return "there", None


def _registered(path: str) -> str:
    place = place_of(path)
    if place.what == "broker":
        return f"broker {place.first('brokerId')}"
    if place.what == "consumer":
        return f"consumer {place.first('memberId')}"
    return "controller" if place.what == "controller" else ""
