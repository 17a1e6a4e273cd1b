"""The action that lets a member of a group expire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.rules.actions import CLIENT
from kafkascope.proxy.rules.faults.error_code import ErrorAction
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.verdicts import Verdict

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame

UNKNOWN_MEMBER_ID: Final = 25


class MemberAction(Action):
    """Answers heartbeats as a coordinator does that has lost the member."""

    word = "member"
    usage = "member expire"
    doc = (
        "drop a group heartbeat: the member gets UNKNOWN_MEMBER_ID, the coordinator waits for the"
        " session timeout"
    )
    sides = (CLIENT,)
    picky = True
    whole = True

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`expire`."""
        if words != ["expire"]:
            raise FaultError(f"{cls.usage}, not {' '.join(words)!r}")
        return cls()

    def can_harm(self, key: int, version: int, side: int) -> bool:
        """Heartbeats of groups, of each kind."""
        name = APIS[key].name
        heartbeat = name.endswith("Heartbeat") and name != "BrokerHeartbeat"
        return heartbeat and _lost().can_harm(key, version, side)

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """Answer in the coordinator's place."""
        return _lost().act(frame)

    def __str__(self) -> str:
        return f"{self.word} expire"


def _lost() -> ErrorAction:
    return ErrorAction(UNKNOWN_MEMBER_ID, None)
