"""Redacts messages for sharing. The declarations mark the fields to redact (`secret`, `entity`,
`subject`, `word`, `enum`); there is no list of fields here, and a text without any of these marks
is removed.

    none     only secrets are hidden: passwords, tokens, SASL
    values   also values of records and of their headers
    keys     also keys of records
    all      also names (topics, groups, clients, users, hosts), free texts and bytes of unknown
             format; names get pseudonyms, the rest asterisks
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final, Literal, TypeAlias

from kafkascope.analyzer.model import Side
from kafkascope.analyzer.transform import secrets
from kafkascope.analyzer.transform.names.pseudonyms import NOUNS, Pseudonyms
from kafkascope.analyzer.transform.names.znodes import NAMELESS, renamed_node, renamed_path
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.embedded.groups import (
    CONNECT_ASSIGNMENT,
    CONNECT_SUBSCRIPTION,
    STICKY_USER_DATA,
)
from kafkascope.dissectors.embedded.masking import CONFIG_VALUE, Policy, asterisks, redacted
from kafkascope.dissectors.embedded.table import FORMATS, Format
from kafkascope.dissectors.errors import DissectError, Malformed, Truncated
from kafkascope.dissectors.keyed import read_header
from kafkascope.dissectors.layout import BytesWire, Layout, Slot, UuidWire, Wire, resolve
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.records.redaction import Change, masked_body, redacted_records
from kafkascope.dissectors.reference.words import WORDS, Words, of_enum, own_part, words_of
from kafkascope.dissectors.registry import message, read_layout, write_layout
from kafkascope.dissectors.schema import Field, Message
from kafkascope.dissectors.values import Uuid

Level: TypeAlias = Literal["none", "values", "keys", "all"]

LEVELS: Final[tuple[Level, ...]] = ("none", "values", "keys", "all")

_NUMBER: Final = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,9})?")
_NODE: Final = re.compile(r"[0-9]{1,10}")
_BROKERS: Final = (4, 8)
"""Types of resources whose names are node ids: BROKER, BROKER_LOGGER."""


@dataclass(slots=True)
class Redaction:
    """One level for all messages of a run; the names it gives are the same in all of them."""

    level: Level = "values"
    names: Pseudonyms = field(default_factory=Pseudonyms)
    records: bool = True
    """Whether records are written anew; not for those who never look into them."""

    @property
    def policy(self) -> Policy | None:
        """None: nothing but secrets is hidden."""
        return None if self.level == "none" else self

    @property
    def keeps_unknown_tags(self) -> bool:
        """Whether tagged fields stay of which the layout knows nothing."""
        return self.level != "all"

    def body(self, layout: Layout, body: Body) -> Body:
        """The body as it may leave."""
        if self.level == "none":
            return masked_body(layout, body)
        return redacted(layout, body, self)

    def request(self, payload: bytes, key: int | None = None) -> bytes | None:
        """The redacted payload of a request; None when it cannot be decoded. `key`: of a ZooKeeper
        request; its handshake carries no key."""
        try:
            head = read_header(payload, key)
        except DissectError:
            return None
        key, version = head.api_key, head.api_version
        return secrets.redacted_payload(payload, "request", key, version, self.policy)

    def response(self, payload: bytes, key: int, version: int) -> bytes | None:
        """The redacted payload of a response to a request of that key and version."""
        return secrets.redacted_payload(payload, "response", key, version, self.policy)

    def frame(self, payload: bytes, side: Side, key: int, version: int) -> bytes | None:
        """The redacted payload of either; of one that cannot be decoded the header and asterisks,
        and None when not even the header can be."""
        return secrets.any_payload(payload, side, key, version, self.policy)

    def value(
        self, message: str, slot: Slot, wire: Wire, value: Any, around: Mapping[str, Any]
    ) -> Any:
        """The replacement of a value; see `Policy`."""
        if isinstance(wire, BytesWire) and wire.records and isinstance(value, bytes):
            if not self.records:
                return value
            names = self.body if self.level == "all" else None
            return redacted_records(value, keys=self.level != "values", names=names)
        if self.level != "all":
            return value
        if isinstance(wire, UuidWire):
            return self.names.uuid(Uuid(value)) if isinstance(value, bytes) else value
        if isinstance(value, str):
            return self._text(slot.field, value, around)
        return self._bytes(message, slot.name, value, around)

    def _text(self, field: Field, value: str, around: Mapping[str, Any]) -> str:
        """The replacement of a text, by its declaration; asterisks for a text without marks."""
        kind = field.entity or field.subject
        if not value.strip("*"):
            return value  # masked already, or a wildcard
        if kind == NAMELESS:
            return renamed_path(self.names, value)
        if kind == "address" or (around.get("entity_type") == "ip" and kind == "resourceName"):
            return self.names.host(value)
        if kind == "coordinatorKey":
            key_type = around.get("key_type", 0)
            return self.names.coordinator_key(value, key_type if isinstance(key_type, int) else 0)
        if kind == CONFIG_VALUE:
            return value if _is_standard_value(value, around) else str(asterisks(value))
        if kind == "resourceName" and around.get("resource_type") in _BROKERS:
            return value if _NODE.fullmatch(value) else self.names.name(value, kind)
        if kind in NOUNS:
            return self.names.name(value, kind)
        words = words_of(field)
        if words is None or kind not in ("", "freeText"):
            return str(asterisks(value))
        return self._word(words, value)

    def _word(self, words: Words, value: str) -> str:
        own = own_part(words, value)
        if own == len(value):
            return value
        if words.noun:
            return self.names.word(value, words.noun)
        return value[:own] + str(asterisks(value[own:]))

    def software(self, text: str) -> str:
        """Name and version of a client's library, as `Exchange.software` has them."""
        if self.level != "all":
            return text
        name, blank, version = text.rpartition(" ")
        name = self._word(WORDS["ClientSoftware"], name)
        return name + blank + self._word(WORDS["SoftwareVersion"], version)

    def listener(self, text: str) -> str:
        """Return the name of a listener, as a request log has it."""
        return self._word(WORDS["Listener"], text) if self.level == "all" else text

    def mechanism(self, text: str) -> str:
        """A SASL mechanism, as `Exchange.mechanism` has it."""
        return self._word(of_enum("SaslMechanism"), text) if self.level == "all" else text

    def _bytes(self, message: str, field: str, value: bytes, around: Mapping[str, Any]) -> bytes:
        write = writer_of(message, field)
        if write is not None and value:
            try:
                return write(value, self.body, self.names, around)
            except DissectError:
                pass
        return bytes(asterisks(value))  # type: ignore[arg-type]


def _is_standard_value(value: str, around: Mapping[str, Any]) -> bool:
    """Whether the value of a config is a word or a number that Kafka's own configs have."""
    if not value or value.lower() in WORDS["ConfigValue"].values:
        return True
    name = around.get("name", around.get("key"))
    own = isinstance(name, str) and name.lower() in WORDS["ConfigName"].values
    return own and _NUMBER.fullmatch(value) is not None


Around: TypeAlias = Mapping[str, Any]
FormatWriter: TypeAlias = Callable[[bytes, Change, Pseudonyms, Around], bytes]
"""(bytes, what becomes of a body, names, the struct around) -> the bytes to write; `DissectError`
when they are of another format."""


def _whole(declared: Message, version: int, value: bytes, at: int, change: Change) -> bytes:
    """A message that fills the bytes from `at` on; what stands before it stays."""
    layout = resolve(declared, min(version, declared.versions.high))
    body, end = read_layout(layout, value, at)
    if end < len(value):
        raise Malformed(f"{len(value) - end} bytes left over", offset=end)
    return value[:at] + write_layout(layout, change(layout, body))


def _first(
    declared: Iterable[tuple[str | Message, int]], value: bytes, at: int, change: Change
) -> bytes:
    """What the first of these messages gives, each with its version, that fills the bytes."""
    *others, last = declared
    for each, version in others:
        try:
            return _whole(_message(each), version, value, at, change)
        except DissectError:
            continue
    return _whole(_message(last[0]), last[1], value, at, change)


def _message(declared: str | Message) -> Message:
    return message(declared) if isinstance(declared, str) else declared


def _number(form: str, value: bytes) -> int:
    if len(value) < struct.calcsize(form):
        raise Truncated("the version is missing")
    (version,) = struct.unpack_from(form, value)
    return int(version)


def _versioned(*declared: str | Message) -> FormatWriter:
    """Return the writer of one of these messages after its int16 version."""

    def write(value: bytes, change: Change, names: Pseudonyms, around: Around) -> bytes:
        version = _number(">h", value)
        return _first([(each, version) for each in declared], value, 2, change)

    return write


def _user_data(value: bytes, change: Change, names: Pseudonyms, around: Around) -> bytes:
    if len(value) == 4 and not value[0]:
        return value  # the generation of a cooperative assignor
    sticky = (STICKY_USER_DATA, 1), (STICKY_USER_DATA, 0)
    if len(value) < 4:
        return _first(sticky, value, 0, change)
    return _first((("SubscriptionInfoData", _number(">i", value)), *sticky), value, 0, change)


def _address(value: bytes, change: Change, names: Pseudonyms, around: Around) -> bytes:
    if len(value) not in (4, 16):
        raise Malformed(f"an address has 4 or 16 bytes, not {len(value)}")
    return ip_address(names.host(str(ip_address(value)))).packed


WRITERS: Final[dict[Format, FormatWriter]] = {
    "subscription": _versioned("ConsumerProtocolSubscription", CONNECT_SUBSCRIPTION),
    "assignment": _versioned("ConsumerProtocolAssignment", CONNECT_ASSIGNMENT),
    "allocation": _versioned(CONNECT_ASSIGNMENT),
    "user data": _user_data,
    "principal": _versioned("DefaultPrincipalData"),
    "address": _address,
    "metrics": lambda value, change, names, around: compress(
        around.get("compression_type", 0), b""
    ),
    "node": lambda value, change, names, around: renamed_node(names, value),
}
"""Format -> how its bytes are written anew; others go."""


def writer_of(message: str, field: str) -> FormatWriter | None:
    """How the bytes of a field are written anew; None when they go."""
    form = FORMATS.get((message, field))
    return WRITERS.get(form) if form is not None else None
