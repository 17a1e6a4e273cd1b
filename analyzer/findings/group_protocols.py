"""Subscriptions and assignments of classic groups that their readers refuse: brokers pass them on
unread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Worded
from kafkascope.analyzer.findings.view import View, listed, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.text import spelled

CONSUMER: Final = "consumer"
CONNECT: Final = "connect"
"""Protocol types whose bytes are known."""
JOIN: Final = 11
SYNC: Final = 14
DESCRIBE: Final = 15

SIDES: Final = ("request", "response", "described")
"""Where bytes are seen: as they are sent, passed on, described to others."""

Part = tuple[str, bytes]
"""A member and its bytes."""


@measured
class UnreadableBytes(Worded):
    """Bytes that cannot be read, and the members that they are of."""

    members: Names = whole(Names)


class GroupProtocols(Detector):
    """What members and leaders of groups tell each other through the broker."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "group-unreadable",
            "error",
            "unreadable subscriptions and assignments",
            "Upgrade or replace the library of the client that sent it: a subscription and an "
            "assignment begin with their int16 version (`kafkascope grammar "
            "ConsumerProtocolAssignment`). Brokers pass these bytes on unread; the members that "
            "read them fail, and the group stops.",
            brief="{n} unreadable subscription or assignment|{n} unreadable subscriptions and "
            "assignments",
            subject=("group",),
        ),
    )
    KEYS = frozenset({JOIN, SYNC, DESCRIBE})

    unread: Keyed[UnreadableBytes] = table(UnreadableBytes, 2_000)
    """By kind, side, group, protocol type that refuses the bytes, client."""
    types: Keyed[Worded] = table(Worded, 2_000)
    """The protocol types that members of a group named."""
    members: Keyed[Worded] = table(Worded, 5_000)
    """The clients of each member of a group."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in a JoinGroup or SyncGroup."""
        asked, told = exchange.request_body, exchange.response_body
        if asked is None:
            return
        if row.api_key == DESCRIBE:
            self._described(row, told or {})
            return
        group, kind = asked["group_id"], asked.get("protocol_type") or ""
        if kind:
            self.types[(group,)].words.add(kind)
        if row.api_key == SYNC:
            parts = [(each["member_id"], each["assignment"]) for each in asked["assignments"]]
            self._look("assignment", "request", row, group, kind, parts)
            mine = asked["member_id"]
            if told is not None and told["assignment"]:
                self._look("assignment", "response", row, group, kind, [(mine, told["assignment"])])
        else:
            metadata = [(asked["member_id"], each["metadata"]) for each in asked["protocols"]]
            self._look("subscription", "request", row, group, kind, metadata)
            mine = (told or asked)["member_id"]
            others: list[Any] = (told or {}).get("members") or []
            parts = [(each["member_id"], each["metadata"]) for each in others]
            self._look("subscription", "response", row, group, kind, parts)
        self.members[(group, mine)].words.add(client_of(row))

    def _described(self, row: Row, told: dict[str, Any]) -> None:
        """Take in what an administrator sees of groups."""
        for group in told.get("groups") or ():
            name, kind, members = group["group_id"], group["protocol_type"], group["members"]
            if not members or kind not in (CONSUMER, CONNECT):
                continue
            self.types[(name,)].words.add(kind)
            for each in members:
                member, host = each["member_id"], each["client_host"].removeprefix("/")
                self.members[(name, member)].words.add((each["client_id"], host))
            wanted = [(each["member_id"], each["member_metadata"]) for each in members]
            given = [(each["member_id"], each["member_assignment"]) for each in members]
            self._look("subscription", "described", row, name, kind, [p for p in wanted if p[1]])
            self._look("assignment", "described", row, name, kind, given)

    def _look(
        self, what: str, side: str, row: Row, group: str, kind: str, parts: list[Part]
    ) -> None:
        # Not before a group is there: it takes 5 ms of each start.
        from kafkascope.dissectors.embedded.groups import fault_of

        for member, value in parts:
            if not value and what == "assignment":
                continue  # a member without partitions
            for each in (kind,) if kind else (CONSUMER, CONNECT):
                fault = fault_of(what, value, each) if each in (CONSUMER, CONNECT) else ""
                if fault:
                    unread = self.unread[(what, side, group, each, *client_of(row))]
                    unread.see(row)
                    unread.words.add(fault)
                    unread.members.add(member)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by group and by who sent it."""
        found = dict(self.unread.items())
        sent = {(what, side, group) for (what, side, group, *_) in found}
        for (what, side, group, kind, client_id, host), unread in found.items():
            types = self.types.get((group,))
            if kind not in (types.words if types is not None else (CONSUMER,)):
                continue  # bytes of another protocol
            before = SIDES[: SIDES.index(str(side))]
            if any((what, each, group) in sent for each in before):
                continue  # the same bytes, passed on
            yield self._finding(view, what, side, group, client_id, host, unread)

    def _finding(
        self,
        view: View,
        what: str,
        side: str,
        group: Any,
        client_id: Any,
        host: Any,
        unread: UnreadableBytes,
    ) -> Finding:
        who, name = view.client(client_id, host), spelled(group)
        fault = listed(unread.words, 1)
        members = self._clients(view, group, unread)
        several = plural(len(unread.members), "member")
        if what == "assignment":
            sender = f"its leader {who}" if side == "request" else "its leader"
            text = f"The assignment of group {name} cannot be read ({fault}): {sender} sent it to "
            text += f"{several}{members}, and none of them can parse it"
        elif side == "request":
            text = (
                f"The subscription of {who} in group {name} cannot be read ({fault}): the leader "
                "of the group cannot parse it, and assigns no partitions"
            )
        else:
            text = (
                f"The subscription of {several}{members} in group {name} cannot be read ({fault}): "
                f"its leader{f' {who}' if side == 'response' else ''} fails at it, and assigns "
                "nothing"
            )
        api = "SyncGroup" if what == "assignment" else "JoinGroup"
        if side == "described":
            api = "DescribeGroups"
        return view.finding(
            self.rule("group-unreadable"),
            text,
            f"api == {api} and group == {quoted(str(group))}",
            unread,
            about=[("group", name), ("client", who)],
        )

    def _clients(self, view: View, group: Any, unread: UnreadableBytes) -> str:
        """Return the clients of members in brackets, as far as they are known."""
        names: dict[str, None] = {}
        for member in unread.members:
            known = self.members.get((group, member))
            for client_id, host in known.words if known is not None else ():
                names[view.client(client_id, host)] = None
        return f" ({listed(names)})" if names else ""
