"""The action that lets brokers offer fewer versions, and refuse those that they do not offer."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import UnknownApi
from kafkascope.dissectors.registry import (
    API_VERSIONS,
    APIS,
    Decoded,
    api_named,
    unsupported_response,
)
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Close, Respond, Verdict

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
    usage = "versions Fetch <= 11, Produce 3-8, Metadata 9"
    doc = (
        "limit the offer of ApiVersions; a connection that uses another version is closed, as"
        " brokers do"
    )
    sides = (BROKER, CLIENT)
    whole = True

    def __init__(self, offers: tuple[Offer, ...]) -> None:
        self._offers = {each.key: each for each in offers}
        self.text = ", ".join(map(str, self._offers.values()))

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`Fetch <= 11, Produce 3-8`."""
        offers = []
        for part in " ".join(words).split(","):
            found = _OFFER.fullmatch(part)
            if found is None:
                raise cls.misused([part.strip()])
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
        names = ", ".join(APIS[key].name for key in self._offers)
        return f"api in {{{names}}}"

    def can_harm(self, key: int, version: int, side: int) -> bool:
        if side == BROKER:
            return key == API_VERSIONS
        offer = self._offers.get(key)
        return offer is not None and not offer.low <= version <= offer.high

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        return super().act(frame) if frame.side == BROKER else self._refuse(frame)

    def changed(self, frame: InterceptedFrame, decoded: Decoded) -> Body | None:
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
        return None if keys == decoded.body["api_keys"] else {**decoded.body, "api_keys": keys}

    def _refuse(self, frame: InterceptedFrame) -> Verdict | None:
        if not self.can_harm(frame.key, frame.version, CLIENT):
            return None
        if frame.key != API_VERSIONS:
            return Close()
        offer = self._offers[frame.key]
        versions = {frame.key: (offer.low, offer.high)}
        return Respond(unsupported_response(frame.pending.correlation_id, versions))
