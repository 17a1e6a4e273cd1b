"""Actions without arguments, which do the same to every frame: drop, hold or close."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.faults.fault import Action
from kafkascope.proxy.rules.verdicts import Close, Drop, Hold, Verdict

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame


def _always(
    name: str,
    what: str,
    verdict: Verdict,
    at: tuple[int, ...] = (CLIENT, BROKER),
    whole_frame: bool = False,
) -> type[Action]:
    """Make an action that gives every frame the same verdict."""

    class Always(Action):
        word = usage = name
        doc = what
        sides = at
        whole = whole_frame

        def act(self, frame: InterceptedFrame) -> Verdict:
            return verdict

    return Always


DropAction: Final = _always(
    "drop",
    "drop the response, although the broker processed the request; on request: the request",
    Drop(),
    (BROKER, CLIENT),
)
BlackHoleAction: Final = _always(
    "black-hole",
    "stop reading the connection, which stays open",
    Hold(forever=True),
)
HoldAction: Final = _always(
    "hold",
    "wait until the frame is released, dropped, or edited",
    Hold(),
    whole_frame=True,
)
ResetAction: Final = _always("reset", "send RST to both sides instead of the frame", Close("reset"))
CloseAction: Final = _always("close", "send FIN to both sides instead of the frame", Close("fin"))
HalfCloseAction: Final = _always(
    "half-close",
    "send FIN to the receiver only",
    Close("half"),
    (BROKER, CLIENT),
)
