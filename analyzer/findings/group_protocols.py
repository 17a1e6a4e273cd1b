"""Subscriptions and assignments of classic groups that their readers refuse: brokers pass them on
unread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.findings.counting import Names, OccurrencesWithText, whole
from kafkascope.analyzer.findings.filters import quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import listed, plural, spelled
from kafkascope.analyzer.identity import client_of

CONSUMER: Final = "consumer"
CONNECT: Final = "connect"
"""Protocol types whose bytes are known."""

SIDES: Final = ("request", "response", "described")
"""Where bytes are seen: as they are sent, passed on, described to others."""

Part = tuple[str, bytes]
"""A member and its bytes."""


class UnreadableBytes(OccurrencesWithText):
    """Bytes that cannot be read, and the members that they are of."""

    members: Names = whole(Names)


class GroupProtocols(Counts):
    """Bytes that group members and leaders exchange through brokers."""

    unread = UnreadableBytes.table(LIMITS.keys)
    """By kind, side, group, protocol type that refuses the bytes, client."""
    types = OccurrencesWithText.table(LIMITS.keys)
    """The protocol types that members of a group named."""
    members = OccurrencesWithText.table(LIMITS.many_keys)
    """The clients of each member of a group."""
    assigned = OccurrencesWithText.table(LIMITS.keys)
    """The members of each group that its leader assigned partitions to."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        asked, told = exchange.request_body, exchange.response_body
        logged = exchange.logged
        if asked is None or (logged is not None and any(map(_is_contents, logged.unknown))):
            return  # Text forms of request logs lack bytes.
        if row.api == "DescribeGroups":
            self._described(row, told or {})
            return
        group, kind = asked["group_id"], asked.get("protocol_type") or ""
        if kind:
            self.types[(group,)].words.add(kind)
        if row.api == "SyncGroup":
            parts = [(each["member_id"], each["assignment"]) for each in asked["assignments"]]
            self._look("assignment", "request", row, group, kind, parts)
            for member, value in parts:
                if value:
                    self.assigned[(group,)].words.add(member)
            mine = asked["member_id"]
            if told is not None and told["assignment"]:
                self._look("assignment", "response", row, group, kind, [(mine, told["assignment"])])
        else:
            mine = (told or asked)["member_id"]
            metadata = [(mine, each["metadata"]) for each in asked["protocols"]]
            self._look("subscription", "request", row, group, kind, metadata)
            others: list[Any] = (told or {}).get("members") or []
            parts = [(each["member_id"], each["metadata"]) for each in others]
            self._look("subscription", "response", row, group, kind, parts)
        self.members[(group, mine)].words.add(client_of(row))

    def _described(self, row: Row, told: dict[str, Any]) -> None:
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
                    unread.see(row, words=fault, members=member)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        found = dict(self.unread.items())
        sent = {key[:3] for key in found}
        for (what, side, group, kind, *who), unread in found.items():
            types = self.types.get((group,))
            if kind not in (types.words if types is not None else (CONSUMER,)):
                continue  # bytes of another protocol
            before = SIDES[: SIDES.index(side)]
            if any((what, each, group) in sent for each in before):
                continue  # the same bytes, passed on
            if what == "subscription" and self._served(group, unread):
                continue
            client, name, fault = view.client(*who), spelled(group), listed(unread.words, 1)
            several = plural(len(unread.members), "member") + self._clients(view, group, unread)
            if what == "assignment":
                api = "SyncGroup"
                sender = f"its leader {client}" if side == "request" else "its leader"
                text = f"The assignment of group {name} cannot be read ({fault}): {sender} sent it "
                text += f"to {several}, and none of them can parse it"
            else:
                api = "JoinGroup"
                whose = client if side == "request" else several
                text = f"The subscription of {whose} in group {name} cannot be read ({fault}): "
                leader = f"its leader{f' {client}' if side == 'response' else ''} fails at it"
                text += (
                    "the leader of the group cannot parse it, and assigns no partitions"
                    if side == "request"
                    else f"{leader}, and assigns nothing"
                )
            api = "DescribeGroups" if side == "described" else api
            yield view.finding(
                "group-unreadable",
                text,
                f"api == {api} and group == {quoted(str(group))}",
                unread,
                about={"group": name, "client": client},
            )

    def _served(self, group: Any, unread: UnreadableBytes) -> bool:
        """Return whether the leader assigned partitions to these members all the same."""
        # kafka-go (0.4.51) declares version 1 and omits owned_partitions: Java leaders fail at it
        # (a buffer underflow), its own do not read so far.
        assigned = self.assigned.get((group,))
        return assigned is not None and set(unread.members) <= set(assigned.words)

    def _clients(self, view: DetectorInput, group: Any, unread: UnreadableBytes) -> str:
        known = (self.members.get((group, member)) for member in unread.members)
        clients = (who for each in known if each is not None for who in each.words)
        names = dict.fromkeys(view.client(*who) for who in clients)
        return f" ({listed(names)})" if names else ""


def _is_contents(path: str) -> bool:
    return path.endswith(("metadata", "assignment"))
