"""Frames of every version, mutations of them, and a reader of one connection."""

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st

from kafkascope.analyzer.conversation import ordinary
from kafkascope.captures.model import Chunk, StreamEvent
from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.registry import APIS, encode_body, example, layout_of
from kafkascope.kernel.pairs import PairSink, Plan, Reader
from kafkascope.kernel.walker import Texts
from tests.kit.wire import Wire, beat, framed, heartbeat, produce, request, response
from tests.matrix import mostly_slow
from tests.strategies import bodies

SIZES: Final = [
    *(value.to_bytes(4, "big") for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x10000000)),
    *(value.to_bytes(8, "big") for value in (1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63)),
    *(b"\x7f\xff", b"\x80\x00", b"\xff\xff", b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff"),
    *(b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x08", b"\x80" * 5),
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
]
"""Lengths, counts, and offsets at the ends of what the machine's integers hold; varints too."""


MANY: Final = mostly_slow(
    [25, max(600, settings.default.max_examples)],  # type: ignore[union-attr]
    lambda count: count == 25,
)
"""How many examples of a law."""


class Host:
    """What a reader asks for, without a conversation."""

    session: Any = None

    def __init__(self) -> None:
        self.numbers = 0

    def plan_of(self, key: int, version: int) -> Plan | None:
        return ordinary.plan_of(key, version)

    def number(self, packet: int) -> int:
        self.numbers += 1
        return self.numbers

    def fetch_request(self, *about: Any) -> Any:
        return None

    def bytes_before(self, data: bytes, offset: int, wanted: int) -> int:
        return 0

    def log_end(self, end: tuple[int, int, int]) -> tuple[int, int, int]:
        return end

    def nothing(self, *about: Any) -> None:
        """Take what the reader says of the state of a connection."""

    learn_request = learn_response = fetch_response = fetch_returned = forgot = grew = nothing


def reader_of_a_test() -> Reader:
    return Reader(PairSink(), {}, Texts(), Host(), 0)


def mutated(data: bytes, rng: Random) -> bytes:
    """The bytes with odd numbers in some places, cut, or with some twice."""
    out = bytearray(data)
    for _ in range(rng.randrange(4)):
        at, odd = rng.randrange(len(out) + 1), rng.choice(SIZES)
        match rng.randrange(4):
            case 0:
                del out[at:]
            case 1:
                out[at:at] = out[at : at + rng.randrange(40)]
            case _:
                out[at : at + len(odd)] = odd
    return bytes(out)


VERSIONS: Final = [
    (api.key, version)
    for api in APIS.values()
    for version in range(api.versions.low, api.versions.high + 1)
]


@st.composite
def frames(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A request of any version, and its response, each without its size."""
    key, version = draw(st.sampled_from(VERSIONS))
    name, id = APIS[key].name, draw(st.integers(0, 2))
    kinds = (
        registry.request_header_version(key, version),
        registry.response_header_version(key, version),
    )
    about = {"request_api_key": key, "request_api_version": version, "correlation_id": id}
    header = example("RequestHeader", kinds[0]) | about
    layouts = layout_of(f"{name}Request", version), layout_of(f"{name}Response", version)
    asked, told = (writer(layout)(draw(bodies(layout))) for layout in layouts)
    return (
        encode_body("RequestHeader", kinds[0], header) + asked,
        encode_body("ResponseHeader", kinds[1], {"correlation_id": id, "tagged_fields": []}) + told,
    )


def fetch_response(records: bytes, high: int) -> bytes:
    """Two partitions with the same records."""
    partition = {"high_watermark": high, "last_stable_offset": high, "records": records}
    topics = [{"topic": "t", "partitions": [partition]}] * 2
    return response("Fetch", 11, 0, responses=topics)


def joined(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Chunks that follow each other as one."""
    out: list[StreamEvent] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, Chunk) and isinstance(last, Chunk) and follows(event, last):
            moved = [each._replace(start=each.start + len(last.data)) for each in event.pieces]
            data, pieces = last.data + event.data, [*last.pieces, *moved]
            out[-1] = Chunk(last.connection, last.direction, last.offset, data, pieces)
        else:
            out.append(event)
    return out


def follows(chunk: Chunk, last: Chunk) -> bool:
    if chunk.connection is not last.connection or chunk.direction != last.direction:
        return False
    return chunk.offset == last.offset + len(last.data)


def messages(rng: Random) -> list[tuple[str, bytes]]:
    """What both sides say in turn: some of it is no request, some answers nothing that was seen, or
    comes before what it answers."""
    said: list[tuple[str, bytes]] = []
    waiting: list[bytes] = []
    for number in range(rng.randrange(2, 9)):
        client_id = rng.choice(["app", "app", "other", None])
        asked, answer = heartbeat(number, client_id), beat(number)
        kind = rng.randrange(6)
        if kind == 0:
            acks = rng.choice([0, 1, -1])
            asked = produce(number, acks=acks, records=bytes(rng.randrange(600)))
            answer = response("Produce", 7, number)
        elif kind == 1:
            asked = request("ApiVersions", 3, number, client_id, client_software_name="lib")
            answer = response("ApiVersions", 3, number)
        elif kind == 2 and rng.random() < 0.5:
            asked = framed(rng.randbytes(rng.randrange(1, 40)))
        said.append(("client", asked))
        if rng.random() < 0.9:
            waiting.append(answer)
        if rng.random() < 0.2:
            waiting.append(beat(rng.choice([99, number + 1, number + 2])))
        while waiting and rng.random() < 0.6:
            said.append(("broker", waiting.pop(0)))
        if len(said) > 1 and rng.random() < 0.1:
            said[-2:] = said[-1], said[-2]
    return said + [("broker", each) for each in waiting]


def noisy(said: list[tuple[str, bytes]], rng: Random) -> Iterator[tuple[str, bytes]]:
    """With nonsense between them, and some of them twice."""
    for side, data in said:
        yield side, data
        if rng.random() < 0.15:
            yield side, rng.choice([b"\xff" * 4, b"\x7f" * 5, rng.randbytes(rng.randrange(1, 30))])
        elif rng.random() < 0.1:
            yield side, data


def connection(seed: int, gaps: bool, midstream: bool, noise: bool) -> list[StreamEvent]:
    """Its events, a chunk for each packet."""
    rng = Random(seed)
    wire = Wire(handshake=not midstream)
    said = messages(rng)
    for side, data in noisy(said, rng) if noise else said:
        at = 0
        while at < len(data):
            part = data[at : at + rng.choice([1, 5, 14, 40, 1000])]
            at += len(part)
            if gaps and rng.random() < 0.06:
                wire.gap(side, len(part), rng.choice(["lost", "cut"]))
            elif side == "client":
                wire.client(part)
            else:
                wire.broker(part)
    if rng.random() < 0.5:
        wire.close("broker").close()
    return wire.events
