"""Subscriptions and assignments of classic groups that their readers refuse: brokers pass them on
unread. Clients that do not fit their group: without an assignor in common, of another type, or
that commit without being members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.findings.counting import Names, Occurrences, OccurrencesWithText, whole
from kafkascope.analyzer.findings.filters import all_of, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import listed, plural, spelled
from kafkascope.analyzer.identity import ClientKey, client_of
from kafkascope.dissectors.reference.codes import error_name

CONSUMER: Final = "consumer"
CONNECT: Final = "connect"
"""Protocol types whose bytes are known."""

UNKNOWN_MEMBER: Final = 25
REFUSALS: Final = {23: "", 69: "type", 81: "size", 26: "session"}
"""Error of a request to join -> case of the advice: INCONSISTENT_GROUP_PROTOCOL, GROUP_ID_NOT_FOUND
(a heartbeat that would join a group of another type), GROUP_MAX_SIZE_REACHED,
INVALID_SESSION_TIMEOUT."""

READ: Final = ("JoinGroup", "SyncGroup", "DescribeGroups")
SIDES: Final = ("request", "response", "described")
"""Where bytes are seen: as they are sent, passed on, described to others."""

Part = tuple[str, bytes]
"""A member and its bytes."""


class UnreadableBytes(OccurrencesWithText):
    """Bytes that cannot be read, and the members that they are of."""

    members: Names = whole(Names)


class RefusedMember(Occurrences):
    """Requests of a client that its group refused, and what the broker said."""

    messages: Names = whole(Names)
    error: Names = whole(Names)
    offers: Names = whole(Names)
    """Assignors of the client."""
    types: Names = whole(Names)
    """Its protocol types."""


class GroupProtocols(Counts):
    """Bytes that group members and leaders exchange through brokers; what groups refuse."""

    unread = UnreadableBytes.table(LIMITS.keys)
    """By kind, side, group, protocol type that refuses the bytes, client."""
    types = OccurrencesWithText.table(LIMITS.keys)
    """The protocol types that members of a group named."""
    members = OccurrencesWithText.table(LIMITS.many_keys)
    """The clients of each member of a group."""
    assigned = OccurrencesWithText.table(LIMITS.keys)
    """The members of each group that its leader assigned partitions to."""

    offers = OccurrencesWithText.table(LIMITS.keys)
    """The assignors that each client offered with which a group took it."""
    refused = RefusedMember.table(LIMITS.keys)
    """By group, API, client."""
    outside = Occurrences.table(LIMITS.keys)
    """Commits that a group refused because they came from no member, by group and client."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        request, response = exchange.request_body, exchange.response_body
        logged = exchange.logged
        if row.errors and request is not None:
            self._refused(row, request)
        if row.api not in READ:
            return
        if request is None or (logged is not None and any(map(_is_contents, logged.unknown))):
            return  # Text forms of request logs lack bytes.
        if row.api == "DescribeGroups":
            self._described(row, response or {})
            return
        group, kind = request["group_id"], request.get("protocol_type") or ""
        if kind and not row.errors:
            self.types[(group,)].words.add(kind)
        for each in () if row.errors else request.get("protocols") or ():
            self.offers[(group, *client_of(row))].words.add(each["name"])
        if row.api == "SyncGroup":
            parts = [(each["member_id"], each["assignment"]) for each in request["assignments"]]
            self._look("assignment", "request", row, group, kind, parts)
            for member, value in parts:
                if value:
                    self.assigned[(group,)].words.add(member)
            mine = request["member_id"]
            if response is not None and response["assignment"]:
                received = [(mine, response["assignment"])]
                self._look("assignment", "response", row, group, kind, received)
        else:
            mine = (response or request)["member_id"]
            metadata = [(mine, each["metadata"]) for each in request["protocols"]]
            self._look("subscription", "request", row, group, kind, metadata)
            others: list[Any] = (response or {}).get("members") or []
            parts = [(each["member_id"], each["metadata"]) for each in others]
            self._look("subscription", "response", row, group, kind, parts)
        self.members[(group, mine)].words.add(client_of(row))

    def _refused(self, row: Row, request: dict[str, Any]) -> None:
        """Take a request that a group refused, other than those of members that it had before."""
        group, codes = request.get("group_id"), {error.code for error in row.errors}
        if row.api == "OffsetCommit":
            epoch = request.get("generation_id_or_member_epoch", -1)
            alone = not request["member_id"] and epoch < 0
            if alone and UNKNOWN_MEMBER in codes:
                self.outside[(group, *client_of(row))].see(row)
            return
        joins = row.api == "JoinGroup" or request.get("member_epoch") == 0
        code = next((code for code in REFUSALS if code in codes), None)
        if joins and code is not None:
            refused = self.refused[(group, row.api, *client_of(row))]
            refused.see(row, error=str(code))
            for each in () if REFUSALS[code] else request.get("protocols") or ():
                refused.offers.add(each["name"])
            if kind := request.get("protocol_type"):
                refused.types.add(kind)
            for error in row.errors:
                if error.message:
                    refused.messages.add(error.message)

    def _described(self, row: Row, response: dict[str, Any]) -> None:
        for group in response.get("groups") or ():
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
        for (group, api, *who), refused in self.refused.items():
            yield self._misfit(group, str(api), (who[0], who[1]), refused, view)
        for (group, *who), seen in self.outside.items():
            client, name = view.client(*who), spelled(group)
            yield view.finding(
                "commit-outside",
                f"{client} commits offsets of group {name} without being a member of it: "
                f"{plural(seen.count, 'commit')} failed with UNKNOWN_MEMBER_ID, because the group "
                f"has members{self._members(group, client.key, view)}",
                f"api == OffsetCommit and error == {UNKNOWN_MEMBER} and group == {quoted(group)}",
                seen,
                client=client,
                about={"group": name, "error": error_name(UNKNOWN_MEMBER)},
            )
        yield from self._unread(view)

    def _misfit(
        self, group: Any, api: str, who: ClientKey, refused: RefusedMember, view: DetectorInput
    ) -> Finding:
        """Return the finding about a client that its group does not take."""
        client, name = view.client(*who), spelled(group)
        codes = [int(code) for code in refused.error]
        errors = [error_name(code) for code in codes]
        why = f": {listed(map(spelled, refused.messages), 1)}" if refused.messages else ""
        case = REFUSALS[codes[0]] or "type"
        known = self.types.get((group,))
        types = set(known.words if known is not None else ()) - set(refused.types)
        if types and refused.types:
            case, why = "type", f": its protocol type is {listed(sorted(refused.types))}"
            why += f", and that of the group is {listed(sorted(types))}"
        elif refused.offers and not refused.messages:
            case, theirs = "", self._assignors(group, view)
            why = f": it offers {listed(map(spelled, sorted(refused.offers)))}"
            why += f", and the group has {theirs}" if theirs else ""
        return view.finding(
            "group-mismatch",
            f"{client} cannot join group {name}: {plural(refused.count, f'{api} request')} failed "
            f"with {listed(errors)}{why}",
            all_of(f"api == {api}", "failed", f"group == {quoted(group)}"),
            refused,
            client=client,
            case=case,
            link=errors[0],
            about={"group": name, "error": errors},
        )

    def _assignors(self, group: Any, view: DetectorInput) -> str:
        """Return what the members of a group offer."""
        members = (
            f"{listed(map(spelled, sorted(each.words)))} of {view.client(*key)}"
            for (name, *key), each in sorted(self.offers.items(), key=str)
            if name == group
        )
        return listed(members, 3)

    def _members(self, group: Any, who: ClientKey, view: DetectorInput) -> str:
        """Return the other clients of a group in brackets, as far as the capture has them."""
        story = view.base.groups.story(str(group))
        found = sorted(
            {
                view.client(member.client_id, member.host)
                for member in (story.members if story is not None else ())
                if (member.client_id or "", member.host) != who
            }
        )
        return f" ({listed(found)})" if found else ""

    def _unread(self, view: DetectorInput) -> Iterator[Finding]:
        """Yield findings about bytes that cannot be read."""
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
        # A join without a response has no member id yet, and no leader saw it.
        return assigned is not None and set(unread.members) - {""} <= set(assigned.words)

    def _clients(self, view: DetectorInput, group: Any, unread: UnreadableBytes) -> str:
        known = (self.members.get((group, member)) for member in unread.members)
        clients = (who for each in known if each is not None for who in each.words)
        names = dict.fromkeys(view.client(*who) for who in clients)
        return f" ({listed(names)})" if names else ""


def _is_contents(path: str) -> bool:
    return path.endswith(("metadata", "assignment"))
