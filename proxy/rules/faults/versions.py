"""The action that lets brokers offer fewer versions, and refuse those that they do not offer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from kafkascope.dissectors.errors import DissectError, UnknownApi
from kafkascope.dissectors.registry import (
    API_VERSIONS,
    APIS,
    UNSUPPORTED_VERSION,
    api_named,
    encode_body,
    example,
    write_layout,
)
from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.verdicts import Close, Replace, Respond, Verdict

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame

USAGE: Final = "versions Fetch <= 11, Produce 3-8, Metadata 9"
_OFFER: Final = re.compile(
    r"\s*(?P<api>[A-Za-z]+)\s*(?:<=\s*(?P<most>\d+)|(?P<low>\d+)\s*(?:-\s*(?P<high>\d+))?)\s*"
)


class Offer(NamedTuple):
    """The versions of an API that are offered."""

    key: int
    low: int
    high: int

    def __str__(self) -> str:
        name = APIS[self.key].name
        if not self.low:
            return f"{name} <= {self.high}"
        return f"{name} {self.low}" + (f"-{self.high}" if self.high > self.low else "")


class VersionsAction(Action):
    """Narrows what ApiVersions offers; of requests it refuses what is not offered then."""

    word = "versions"
    usage = USAGE
    doc = (
        "limit the offer of ApiVersions; a connection that uses another version is closed, as"
        " brokers do"
    )
    sides = (BROKER, CLIENT)
    picky = True
    whole = True

    def __init__(self, offers: tuple[Offer, ...]) -> None:
        self._offers = {each.key: each for each in offers}

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`Fetch <= 11, Produce 3-8`."""
        offers = []
        for part in " ".join(words).split(","):
            found = _OFFER.fullmatch(part)
            if found is None:
                raise FaultError(f"{USAGE}, not {part.strip()!r}")
            try:
                key = api_named(found["api"]).key
            except UnknownApi as error:
                raise FaultError(error.reason) from None
            low = int(found["low"] or 0)
            high = int(found["most"] or found["high"] or low)
            if high < low:
                raise FaultError(f"{part.strip()!r} contains no version")
            offers.append(Offer(key, low, high))
        return cls(tuple(offers))

    @property
    def followers(self) -> str:
        """The filter of the requests on which it is enforced."""
        names = ", ".join(APIS[key].name for key in self._offers)
        return f"api in {{{names}}}"

    def can_harm(self, key: int, version: int, side: int) -> bool:
        """Whether it has something to say to such frames."""
        if side == BROKER:
            return key == API_VERSIONS
        offer = self._offers.get(key)
        return offer is not None and not offer.low <= version <= offer.high

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """Narrow a response; refuse a request."""
        return self._narrow(frame) if frame.side == BROKER else self._refuse(frame)

    def _narrow(self, frame: InterceptedFrame) -> Verdict | None:
        decoded = frame.decoded
        if decoded is None or frame.payload is None:
            return None
        keys = []
        for api in decoded.body["api_keys"]:
            offer = self._offers.get(api["api_key"])
            if offer is not None:
                low = max(api["min_version"], offer.low)
                high = min(api["max_version"], offer.high)
                if low > high:
                    continue
                api = {**api, "min_version": low, "max_version": high}
            keys.append(api)
        if keys == decoded.body["api_keys"]:
            return None
        try:
            body = write_layout(decoded.layout, {**decoded.body, "api_keys": keys})
        except DissectError:
            return None
        return Replace(frame.payload[: decoded.body_at] + body + frame.payload[decoded.end :])

    def _refuse(self, frame: InterceptedFrame) -> Verdict | None:
        if not self.can_harm(frame.key, frame.version, CLIENT):
            return None
        if frame.key != API_VERSIONS:
            return Close()
        # Brokers answer this one in version 0, whatever was asked (KIP-511).
        offer = self._offers[frame.key]
        body = example("ApiVersionsResponse", 0) | {
            "error_code": UNSUPPORTED_VERSION,
            "api_keys": [
                {"api_key": frame.key, "min_version": offer.low, "max_version": offer.high}
            ],
        }
        head = frame.pending.correlation_id.to_bytes(4, "big", signed=True)
        return Respond(head + encode_body("ApiVersionsResponse", 0, body))

    def __str__(self) -> str:
        return f"{self.word} " + ", ".join(map(str, self._offers.values()))
