"""Walks over message bodies by their layouts as data, and collects what columns need of them.

One walker for all APIs and versions: a tree of `Node`s (`analyzer/bodies/trees.py`) says what
stands where. It makes the same checks as the generated readers (`dissectors/codec/reader.py`):
every length and count against the bytes that are left, the memory of the decoded body, the order of
tagged fields. What does not fit raises `Refused`, and the general way tells where and why.

Compiled by mypyc, see `docs/architecture.md`; the same source runs without.
"""

from __future__ import annotations

from typing import Any, Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

# Kinds of nodes.

# Fixed-size fields that nobody asks for, one after the other.
SKIP: Final[i64] = 0
NUMBER: Final[i64] = 1
UUID: Final[i64] = 2
STRING: Final[i64] = 3
BYTES: Final[i64] = 4
ARRAY: Final[i64] = 5
STRUCT: Final[i64] = 6

# Roles: what a value is for the columns of an exchange.
TOPIC: Final[i64] = 1
TOPIC_ID: Final[i64] = 2
PARTITION: Final[i64] = 3
GROUP: Final[i64] = 4
MEMBER: Final[i64] = 5
GENERATION: Final[i64] = 6
PRODUCER_ID: Final[i64] = 7
PRODUCER_EPOCH: Final[i64] = 8
TRANSACTIONAL_ID: Final[i64] = 9
ACKS: Final[i64] = 10
THROTTLE: Final[i64] = 11
BASE_OFFSET: Final[i64] = 12
RECORDS: Final[i64] = 13
# Of a Fetch response, where null in place of records is worth a word.
NULLABLE_RECORDS: Final[i64] = 14
KEY_TYPE: Final[i64] = 15
COORDINATOR_KEY: Final[i64] = 16
# Of an element of an array: it names no scope.
EACH_TOPIC: Final[i64] = 17
EACH_ID: Final[i64] = 18
EACH_PARTITION: Final[i64] = 19
EACH_GROUP: Final[i64] = 20
EACH_PRODUCER: Final[i64] = 21
EACH_TRANSACTION: Final[i64] = 22
RACK: Final[i64] = 23
ERROR: Final[i64] = 30
MESSAGE: Final[i64] = 31
SECOND_ERROR: Final[i64] = 32
SECOND_MESSAGE: Final[i64] = 33

# What a value is for the state of a connection: see `Facts` and `Partition`.
P_INDEX: Final[i64] = 1
P_ERROR: Final[i64] = 2
P_HIGH: Final[i64] = 3
P_STABLE: Final[i64] = 4
P_START: Final[i64] = 5
P_ELSEWHERE: Final[i64] = 6
P_RECORDS: Final[i64] = 7
P_OFFSET: Final[i64] = 8
P_BASE: Final[i64] = 9
P_FORGOTTEN: Final[i64] = 10
F_REPLICA: Final[i64] = 20
F_MAX_WAIT: Final[i64] = 21
F_MIN_BYTES: Final[i64] = 22
F_MAX_BYTES: Final[i64] = 23
F_ISOLATION: Final[i64] = 24
F_SESSION: Final[i64] = 25
F_EPOCH: Final[i64] = 26
F_ERROR: Final[i64] = 27
F_ENDPOINTS: Final[i64] = 28

# Of a number that was not seen.
ABSENT: Final[i64] = -(1 << 62)
# As `body_bytes` of `dissectors.limits`, which says why.
BODY_LIMIT: Final[i64] = 128 << 20
UNKNOWN_TAG_WEIGHT: Final[i64] = 340
# Bytes of texts that are kept, and what they take beside them: the same few names come again and
# again.
MAX_TEXTS: Final[i64] = 4 << 20
# Memory of a text beside its bytes.
TEXT: Final[i64] = 200
# Bytes of one that is kept.
LONGEST_TEXT: Final[i64] = 512


class Refused(Exception):
    """The bytes do not fit the layout."""


class Node:
    """One field of one version: see `analyzer/bodies/trees.py`."""

    def __init__(self, kind: i64) -> None:
        self.kind: i64 = kind
        self.size: i64 = 0
        """Bytes of a number, or of what is skipped."""
        self.signed: bool = True
        self.compact: bool = False
        self.nullable: bool = False
        self.long: bool = False
        """A string with a length of four bytes."""
        self.least: i64 = 1
        """For an array: the fewest bytes that an element takes."""
        self.weight: i64 = 0
        """For an array: the memory of an element, see `dissectors.codec.reader`."""
        self.fixed: i64 = 0
        """For an array: bytes of each element where nobody asks for any; 0: look at them."""
        self.role: i64 = 0
        self.part: i64 = 0
        self.kids: list[Node] = []
        """Fields of a struct, or the element of an array."""
        self.flexible: bool = False
        self.tags: list[Node] = []
        self.tag: i64 = -1
        self.top: bool = False
        """The struct is the body itself."""
        self.errors: bool = False
        """The struct has error codes of its own."""
        self.scoped: bool = False
        """The struct has a topic, partition or group of its own."""
        self.name: str = ""
        """Name of the field in bodies."""
        self.noted: list[Node] = []
        """Fields of a struct, tagged ones included, that have a role, or one in them."""


class Partition:
    """What a Produce or Fetch says of one partition."""

    def __init__(self, topic: str | None, topic_id: bytes | None, index: i64) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index: i64 = index
        self.error: i64 = 0
        self.high: i64 = -1
        """High watermark; -1 where the response lacks it, so the next ones."""
        self.stable: i64 = -1
        self.start: i64 = -1
        self.elsewhere: bool = False
        """The response names another broker to read from."""
        self.offset: i64 = ABSENT
        """That a Fetch asks for, or that the broker gave to a produced batch."""
        self.at: i64 = 0
        """Where the records begin in the frame."""
        self.size: i64 = -1
        """Bytes of the records; -1: null, or none."""


class Texts:
    """Strings by their bytes: each is decoded once."""

    def __init__(self) -> None:
        self.known: dict[bytes, str] = {}
        self.size: i64 = 0

    def of(self, raw: bytes) -> str:
        text = self.known.get(raw)
        if text is None:
            text = raw.decode("utf-8", "surrogateescape")
            if len(raw) <= LONGEST_TEXT:
                self.size += len(raw) + TEXT
                if self.size > MAX_TEXTS:
                    # All at once: those in use are back within some exchanges, and an order of use
                    # would cost something at each look-up.
                    self.known.clear()
                    self.size = len(raw) + TEXT
                self.known[raw] = text
        return text


class Facts:
    """What the bodies of an exchange say, in the order of the wire, without duplicates. Walk the
    request first, then the response, with the same object."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.room: i64 = BODY_LIMIT
        self.topics: dict[str, None] | None = None
        self.topic_ids: dict[bytes, None] | None = None
        self.partitions: dict[int, None] | None = None
        self.groups: dict[str, None] | None = None
        self.members: dict[str, None] | None = None
        self.generations: dict[int, None] | None = None
        self.producer_ids: dict[int, None] | None = None
        self.producer_epochs: dict[int, None] | None = None
        self.transactional_ids: dict[str, None] | None = None
        self.errors: (
            list[tuple[int, bool, str | None, bytes | None, int | None, str | None, str | None]]
            | None
        ) = None
        """(code, top, topic, topic id, partition, group, message)."""
        self.acks: i64 = ABSENT
        self.throttle: i64 = 0
        self.base_offset: i64 = ABSENT
        self.carries: bool = False
        """A message has a field of records."""
        self.spans: list[int] | None = None
        """Where records stand in the frame, (at, size) one after the other; size 0: null."""
        self.key_type: i64 = 0
        self.keys: list[str] | None = None
        # The scope: what the innermost structs say.
        self.topic: str | None = None
        self.topic_id: bytes | None = None
        self.partition: i64 = ABSENT
        self.group: str | None = None
        self.number: i64 = 0
        """The last number with a role, so the next one."""
        self.text: str | None = None
        self.tagged_error: i64 = 0
        # The state of a connection.
        self.asked: list[Partition] | None = None
        """Partitions of the request."""
        self.forgotten: list[Partition] | None = None
        self.told: list[Partition] | None = None
        """Partitions of the response."""
        self.response: bool = False
        """The response is being walked."""
        self.replica: i64 = -1
        self.max_wait: i64 = 0
        self.min_bytes: i64 = 0
        self.max_bytes: i64 = ABSENT
        self.isolation: i64 = 0
        self.rack: str | None = None
        """Rack of the consumer that fetches."""
        self.session: i64 = 0
        self.epoch: i64 = -1
        self.new_session: i64 = 0
        """Id of the fetch session that the response names."""
        self.error: i64 = 0
        """Error of the response itself."""
        self.endpoints: bool = False
        """The response names addresses of nodes."""


def read_length(data: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    """Return an unsigned varint of at most 32 bits and the offset after it."""
    value: i64 = 0
    shift: i64 = 0
    while shift <= 28:
        if at >= end:
            raise Refused
        byte: i64 = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise Refused
            return value, at
        shift += 7
    raise Refused


def read_number(data: bytes, at: i64, size: i64, is_signed: bool) -> i64:
    """Return a number of 1, 2, 4 or 8 bytes, which are there."""
    value: i64
    if size == 4:
        value = i64(read_i32_be(data, at))
        if not is_signed:
            value &= 0xFFFFFFFF
    elif size == 2:
        value = i64(read_i16_be(data, at))
        if not is_signed:
            value &= 0xFFFF
    elif size == 8:
        value = read_i64_be(data, at)
    else:
        value = data[at]
        if value > 127 and is_signed:
            value -= 256
    return value


def read_size(data: bytes, at: i64, end: i64, compact: bool, short: bool) -> tuple[i64, i64]:
    """Return the size of a string, bytes or array, and the offset after it; -1 stands for null.
    `short`: it has two bytes, not four."""
    size: i64
    if compact:
        if at >= end:
            raise Refused
        size = data[at]
        at += 1
        if size > 127:
            size, at = read_length(data, at - 1, end)
        return size - 1, at
    if short:
        if at + 2 > end:
            raise Refused
        size = i64(read_i16_be(data, at))
        return size, at + 2
    if at + 4 > end:
        raise Refused
    size = i64(read_i32_be(data, at))
    return size, at + 4


def walk_request(node: Node, data: bytes, at: i64, end: i64, facts: Facts) -> bool:
    """Walk the body of a request; whether it fits to the last byte."""
    facts.room = BODY_LIMIT
    try:
        if walk(node, data, at, end, facts) != end:
            return False
    except Refused:
        return False
    end_request(facts)
    return True


def walk_response(node: Node, data: bytes, at: i64, end: i64, facts: Facts) -> bool:
    """Walk the body of a response; whether it fits to the last byte."""
    facts.room = BODY_LIMIT
    begin_response(facts)
    try:
        return walk(node, data, at, end, facts) == end
    except Refused:
        return False


def note_request(node: Node, body: dict[str, Any], facts: Facts) -> None:
    """Take note of a body that is decoded: the same as a walk over its bytes finds, but for records
    and the state of a connection."""
    note_struct(node, body, facts)
    end_request(facts)


def note_response(node: Node, body: dict[str, Any], facts: Facts) -> None:
    """Take note of a body that is decoded: as `note_request`."""
    begin_response(facts)
    note_struct(node, body, facts)


def end_request(facts: Facts) -> None:
    keys = facts.keys
    if keys is not None:
        for key in keys:
            if facts.key_type == 0:
                facts.groups = with_text(facts.groups, key)
            elif facts.key_type == 1:
                facts.transactional_ids = with_text(facts.transactional_ids, key)
        facts.keys = None


def begin_response(facts: Facts) -> None:
    facts.response = True
    # The scope of the request's last struct is not that of the response.
    facts.topic = None
    facts.topic_id = None
    facts.partition = ABSENT
    facts.group = None


def walk(node: Node, data: bytes, at: i64, end: i64, facts: Facts) -> i64:
    """Walk one value; return the offset after it."""
    kind = node.kind
    if kind == SKIP:
        at += node.size
        if at > end:
            raise Refused
        return at
    if kind == NUMBER:
        size = node.size
        if at + size > end:
            raise Refused
        value = read_number(data, at, size, node.signed)
        if node.part != 0:
            note_state(node, value, facts)
        if node.role != 0:
            note_number(node.role, value, facts)
        return at + size
    if kind == STRUCT:
        return walk_struct(node, data, at, end, facts)
    if kind == UUID:
        if at + 16 > end:
            raise Refused
        note_uuid(node.role, data[at : at + 16], facts)
        return at + 16
    size, at = read_size(data, at, end, node.compact, kind == STRING and not node.long)
    if size < 0:
        if size != -1 or not node.nullable:
            raise Refused
        if node.role != 0:
            note_null(node.role, facts)
        return at
    if kind == ARRAY:
        return walk_array(node, data, at, end, size, facts)
    if at + size > end:
        raise Refused
    role = node.role
    if role != 0:
        if kind == STRING:
            note_text(role, facts.texts.of(data[at : at + size]), facts)
        else:
            note_records(node, at, size, facts)
    return at + size


def walk_array(node: Node, data: bytes, at: i64, end: i64, count: i64, facts: Facts) -> i64:
    if count > (end - at) // node.least:
        raise Refused
    facts.room -= count * node.weight
    if facts.room < 0:
        raise Refused
    if node.part == F_ENDPOINTS and count > 0:
        facts.endpoints = True
    if node.fixed > 0:
        return at + count * node.fixed
    element = node.kids[0]
    if element.kind == STRUCT and not element.nullable:
        for _ in range(count):
            at = walk_struct(element, data, at, end, facts)
    else:
        for _ in range(count):
            at = walk(element, data, at, end, facts)
    return at


def walk_struct(node: Node, data: bytes, at: i64, end: i64, facts: Facts) -> i64:
    """Walk the fields of a struct, and what is tagged after them."""
    if node.nullable and node.tag < 0:
        if at >= end:
            raise Refused
        marker: i64 = data[at]
        at += 1
        if marker == 255:
            return at
        if marker != 1:
            raise Refused
    topic: str | None = None
    topic_id: bytes | None = None
    group: str | None = None
    partition: i64 = ABSENT
    if node.scoped:
        topic, topic_id, group, partition = (
            facts.topic,
            facts.topic_id,
            facts.group,
            facts.partition,
        )
    if node.errors:
        at = walk_with_errors(node, data, at, end, facts)
    else:
        for kid in node.kids:
            at = walk(kid, data, at, end, facts)
        if node.flexible:
            if at >= end:
                raise Refused
            if data[at] == 0:
                at += 1
            else:
                at = walk_tags(node, data, at, end, facts)
    if node.scoped:
        facts.topic, facts.topic_id, facts.group, facts.partition = (
            topic,
            topic_id,
            group,
            partition,
        )
    return at


def walk_with_errors(node: Node, data: bytes, at: i64, end: i64, facts: Facts) -> i64:
    """Walk the fields of a struct with error codes: these come before those of structs inside it,
    and with what the whole struct says."""
    errors = facts.errors
    mark: i64 = 0 if errors is None else len(errors)
    code: i64 = 0
    second: i64 = 0
    message: str | None = None
    other: str | None = None
    for kid in node.kids:
        at = walk(kid, data, at, end, facts)
        role = kid.role
        if role >= ERROR:
            if role == ERROR:
                code = facts.number
            elif role == MESSAGE:
                message = facts.text
            elif role == SECOND_ERROR:
                second = facts.number
            else:
                other = facts.text
    if node.flexible:
        if at >= end:
            raise Refused
        if data[at] == 0:
            at += 1
        else:
            facts.tagged_error = 0
            at = walk_tags(node, data, at, end, facts)
            if facts.tagged_error != 0:
                second = facts.tagged_error
    if second != 0:
        note_error(mark, second, node.top, other, facts)
    if code != 0:
        note_error(mark, code, node.top, message, facts)
    return at


def walk_tags(node: Node, data: bytes, at: i64, end: i64, facts: Facts) -> i64:
    """Walk a tagged section that is not empty."""
    count, at = read_length(data, at, end)
    # A tagged field takes two bytes at least.
    if count > end - at:
        raise Refused
    facts.room -= count * UNKNOWN_TAG_WEIGHT
    if facts.room < 0:
        raise Refused
    last: i64 = -1
    for _ in range(count):
        tag, at = read_length(data, at, end)
        size, at = read_length(data, at, end)
        stop = at + size
        if tag <= last or stop > end:
            raise Refused
        last = tag
        for known in node.tags:
            if known.tag == tag:
                if known.kind == STRUCT and known.nullable:
                    marker, at = read_length(data, at, end)
                    if marker == 1:
                        at = walk_struct(known, data, at, end, facts)
                    elif marker != 0:
                        raise Refused
                else:
                    at = walk(known, data, at, end, facts)
                    if known.role == SECOND_ERROR:
                        facts.tagged_error = facts.number
                if at != stop:
                    raise Refused
                break
        at = stop
    return at


# --- bodies that are decoded


def note_struct(node: Node, body: dict[str, Any], facts: Facts) -> None:
    """Take note of the fields of a struct: as `walk_struct`."""
    topic, topic_id, group, partition = facts.topic, facts.topic_id, facts.group, facts.partition
    mark: i64 = 0 if facts.errors is None else len(facts.errors)
    codes: list[int] = [0, 0]
    messages: list[str | None] = [None, None]
    for field in node.noted:
        note_value(field, body[field.name], facts)
        role = field.role
        if role == ERROR or role == SECOND_ERROR:
            codes[0 if role == ERROR else 1] = facts.number
        elif role == MESSAGE or role == SECOND_MESSAGE:
            messages[0 if role == MESSAGE else 1] = facts.text
    for index in (1, 0):
        if codes[index] != 0:
            note_error(mark, codes[index], node.top, messages[index], facts)
    if node.scoped:
        facts.topic, facts.topic_id, facts.group, facts.partition = (
            topic,
            topic_id,
            group,
            partition,
        )


def note_value(node: Node, value: Any, facts: Facts) -> None:
    kind = node.kind
    if value is None:
        note_null(node.role, facts)
    elif kind == STRUCT:
        note_struct(node, value, facts)
    elif kind == ARRAY:
        element = node.kids[0]
        for each in value:
            note_value(element, each, facts)
    elif kind == NUMBER:
        note_number(node.role, value, facts)
    elif kind == STRING:
        note_text(node.role, value, facts)
    elif kind == UUID:
        note_uuid(node.role, value, facts)


# --- what values are


def note_error(mark: i64, code: i64, top: bool, message: str | None, facts: Facts) -> None:
    """Take note of an error, before those that were noted since `mark`."""
    errors = facts.errors
    if errors is None:
        errors = facts.errors = []
    partition: int | None = None
    if facts.partition != ABSENT:
        partition = facts.partition
    errors.insert(mark, (code, top, facts.topic, facts.topic_id, partition, facts.group, message))


def with_number(found: dict[int, None] | None, value: i64) -> dict[int, None]:
    if found is None:
        found = {}
    found[value] = None
    return found


def with_text(found: dict[str, None] | None, text: str) -> dict[str, None]:
    if found is None:
        found = {}
    found[text] = None
    return found


def note_number(role: i64, value: i64, facts: Facts) -> None:
    if role >= ERROR:
        facts.number = value
        return
    if role == PARTITION or role == EACH_PARTITION:
        if role == PARTITION:
            facts.partition = value
        facts.partitions = with_number(facts.partitions, value)
    elif role == THROTTLE:
        facts.throttle = value
    elif role == ACKS:
        facts.acks = value
    elif role == BASE_OFFSET:
        if facts.base_offset == ABSENT:
            facts.base_offset = value
    elif role == GENERATION:
        facts.generations = with_number(facts.generations, value)
    elif role == PRODUCER_ID or role == EACH_PRODUCER:
        if value >= 0 or role == EACH_PRODUCER:
            facts.producer_ids = with_number(facts.producer_ids, value)
    elif role == PRODUCER_EPOCH:
        if value >= 0:
            facts.producer_epochs = with_number(facts.producer_epochs, value)
    elif role == KEY_TYPE:
        facts.key_type = value


def note_text(role: i64, text: str, facts: Facts) -> None:
    if role >= ERROR:
        facts.text = text
        return
    if role == TOPIC or role == EACH_TOPIC:
        if role == TOPIC:
            facts.topic = text
            if not text:
                return
        facts.topics = with_text(facts.topics, text)
    elif role == GROUP or role == EACH_GROUP:
        if role == GROUP:
            facts.group = text
            if not text:
                return
        facts.groups = with_text(facts.groups, text)
    elif role == MEMBER:
        if text:
            facts.members = with_text(facts.members, text)
    elif role == TRANSACTIONAL_ID or role == EACH_TRANSACTION:
        if text or role == EACH_TRANSACTION:
            facts.transactional_ids = with_text(facts.transactional_ids, text)
    elif role == RACK:
        facts.rack = text
    elif role == COORDINATOR_KEY:
        keys = facts.keys
        if keys is None:
            keys = facts.keys = []
        keys.append(text)


def note_uuid(role: i64, raw: bytes, facts: Facts) -> None:
    """Take note of the id of a topic."""
    if role == TOPIC_ID:
        facts.topic_id = raw
        if raw == NO_ID:
            return
    found = facts.topic_ids
    if found is None:
        found = facts.topic_ids = {}
    found[raw] = None


NO_ID: Final = bytes(16)


def note_null(role: i64, facts: Facts) -> None:
    if role >= ERROR:
        facts.text = None
    elif role == TOPIC:
        facts.topic = None
    elif role == GROUP:
        facts.group = None
    elif role == RECORDS:
        facts.carries = True
    elif role == NULLABLE_RECORDS:
        facts.carries = True
        note_span(0, 0, facts)


def note_span(at: i64, size: i64, facts: Facts) -> None:
    """Take note of where records stand."""
    spans = facts.spans
    if spans is None:
        spans = facts.spans = []
    spans.append(at)
    spans.append(size)


def note_records(node: Node, at: i64, size: i64, facts: Facts) -> None:
    facts.carries = True
    if size > 0:
        note_span(at, size, facts)
    if node.part == P_RECORDS:
        found = facts.told if facts.response else facts.asked
        if found is not None:
            part = found[-1]
            part.at = at
            part.size = size


def note_state(node: Node, value: i64, facts: Facts) -> None:
    """Take note of a number that the state of a connection needs."""
    part = node.part
    if part < F_REPLICA:
        found = facts.told if facts.response else facts.asked
        if part == P_INDEX:
            if found is None:
                found = []
                if facts.response:
                    facts.told = found
                else:
                    facts.asked = found
            found.append(Partition(facts.topic, facts.topic_id, value))
            return
        if part == P_FORGOTTEN:
            found = facts.forgotten
            if found is None:
                found = facts.forgotten = []
            found.append(Partition(facts.topic, facts.topic_id, value))
            return
        if found is None:
            return
        last = found[-1]
        if part == P_ERROR:
            last.error = value
        elif part == P_HIGH:
            last.high = value
        elif part == P_STABLE:
            last.stable = value
        elif part == P_START:
            last.start = value
        elif part == P_ELSEWHERE:
            last.elsewhere = value >= 0
        elif part == P_OFFSET or part == P_BASE:
            last.offset = value
    elif part == F_MAX_WAIT:
        facts.max_wait = value
    elif part == F_MIN_BYTES:
        facts.min_bytes = value
    elif part == F_MAX_BYTES:
        facts.max_bytes = value
    elif part == F_SESSION:
        if facts.response:
            facts.new_session = value
        else:
            facts.session = value
    elif part == F_EPOCH:
        facts.epoch = value
    elif part == F_ERROR:
        facts.error = value
    elif part == F_ISOLATION:
        facts.isolation = value
    elif part == F_REPLICA:
        facts.replica = value
