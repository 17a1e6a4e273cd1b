"""pcapng blocks: sections, clocks, old blocks, what is skipped and what is kept."""

from io import BytesIO
from struct import pack
from typing import Any

import pytest

from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Packet
from tests.kit.captures import (
    FRAME,
    START_NS,
    Trickle,
    block,
    conversation,
    enhanced,
    interface,
    read,
    section,
)


def packets(data: bytes) -> tuple[list[Packet], Source]:
    source = Source(["x"], None, {0: Trickle(data)})
    return list(source.packets()), source


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("options", "ticks", "time_ns"),
    [
        ({}, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
        ({"tsresol": b"\x09"}, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        ({"tsresol": b"\x03"}, 1_700_000_000_123, 1_700_000_000_123_000_000),
        ({"tsresol": b"\x00"}, 1_700_000_000, 1_700_000_000_000_000_000),
        ({"tsresol": b"\x0c"}, 1_700_000_000_123_456_789, 1_700_000_000_123_456),
        ({"tsresol": b"\x8a"}, 1_700_000_000 * 1024 + 512, 1_700_000_000_500_000_000),
        ({"tsresol": b"\x00"}, (1 << 64) - 1, LIMITS.time_ns),
    ],
)
@pytest.mark.parametrize("bulk", [True, False])
def test_each_interface_has_its_own_clock(
    order: str, options: dict[str, bytes], ticks: int, time_ns: int, bulk: bool
) -> None:
    data = section(order) + interface(order, **options) + enhanced(order, ticks)
    assert packets(data)[0][0].time_ns == time_ns
    _, source, _ = read(data, bulk=bulk)
    assert source.statistics.first_ns == time_ns


@pytest.mark.parametrize("bulk", [True, False])
def test_a_clock_may_have_an_offset(bulk: bool) -> None:
    for offset, expected in ((100, 107_000_000_000), (-100, 0)):
        option = pack("<q", offset)
        data = section("<") + interface("<", tsresol=b"\0", tsoffset=option) + enhanced("<", 7)
        assert read(data, bulk=bulk)[1].statistics.first_ns == expected


def test_sections_change_byte_order_and_interfaces() -> None:
    data = b"".join(
        (
            section("<"),
            interface("<", name=b"eth0"),
            interface("<", 101, tsresol=b"\x09", name=b"tun0", comment=b"the other"),
            enhanced("<", 1),
            enhanced("<", 2, 1),
            section(">"),
            interface(">", 113, name=b"any", description=b"described"),
            enhanced(">", 3),
        )
    )
    found, source = packets(data)
    assert [(p.number, p.time_ns, p.link_type, p.interface) for p in found] == [
        (1, 1000, 1, 0),
        (2, 2, 101, 1),
        (3, 3000, 113, 2),
    ]
    assert [(each.name, each.comment) for each in source.interfaces()] == [
        ("eth0", ""),
        ("tun0", "the other"),
        ("any", "described"),
    ]
    assert source.comment_of(0, 1) == "the other"
    for each in found:
        assert data[each.at : each.at + len(FRAME)] == each.data == FRAME


@pytest.mark.parametrize("order", ["<", ">"])
def test_simple_and_obsolete_blocks_are_packets_too(order: str) -> None:
    old = pack(order + "HHIIII", 0, 7, 0, 9, len(FRAME), 99) + FRAME
    data = b"".join(
        (
            section(order),
            interface(order, snaplen=40),
            block(order, 2, old),
            block(order, 3, pack(order + "I", 60) + FRAME[:40]),
            block(order, 3, pack(order + "I", 3) + FRAME[:3]),
            enhanced(order, 11),
        )
    )
    found, _ = packets(data)
    assert [(p.time_ns, len(p.data), p.length) for p in found] == [
        (9000, 60, 99),
        (9000, 40, 60),
        (9000, 3, 3),
        (11000, 60, 60),
    ]


def test_unknown_blocks_are_skipped_and_secrets_kept() -> None:
    huge = block("<", 0x0BAD, bytes(20 << 20))
    drops = pack("<III", 0, 0, 0) + pack("<HHQ", 5, 8, 12) + pack("<HHQ", 7, 8, 30) + bytes(4)
    data = b"".join(
        (
            section("<"),
            interface("<"),
            block("<", 10, pack("<II", 0x544C534B, 5) + b"CLIEN"),
            block("<", 4, bytes(8)),
            huge,
            enhanced("<", 1),
            block("<", 5, drops),
        )
    )
    found, source = packets(data)
    assert len(found) == 1
    assert [(each.kind, each.data) for each in source.secrets] == [(0x544C534B, b"CLIEN")]
    assert source.statistics.dropped == 42


GOOD = section("<") + interface("<") + enhanced("<", 1)
DAMAGE: dict[str, tuple[bytes, str]] = {
    "unknown interface": (enhanced("<", 2, 5), "interface 5, but only 1"),
    "captured beyond its block": (
        block("<", 6, pack("<IIIII", 0, 0, 0, 400, 400) + FRAME),
        "400 bytes in a block",
    ),
    "two lengths": (enhanced("<", 2)[:-4] + b"\0\0\0\0", "two lengths"),
    "odd length": (pack("<II", 6, 33) + bytes(100), "length 33"),
    "tiny block": (pack("<II", 99, 4) + bytes(40), "length 4"),
    "tiny packet block": (block("<", 6, b""), "packet block without header"),
    "tiny interface": (block("<", 1, b""), "interface block"),
    "tiny old block": (block("<", 2, b"1234"), "packet block without header"),
    "huge packet": (pack("<II", 6, 1 << 30) + bytes(100), "1073741824"),
    "section without byte order": (block("<", 0x0A0D0D0A, bytes(16)), "byte order"),
    "cut": (enhanced("<", 2)[:50], "incomplete"),
    "cut in a huge block": (pack("<II", 0x0BAD, 1 << 30) + bytes(100), "incomplete"),
    "a huge block of no known type": (pack("<II", 99, 1 << 30) + bytes(100), "1073741824 bytes"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_has_a_place_and_a_reason(what: str) -> None:
    more, reason = DAMAGE[what]
    _, source, error = read(GOOD + more)
    assert source.statistics.packets == 1
    assert f"byte {len(GOOD)}" in error
    assert reason in error


def test_a_simple_packet_needs_an_interface() -> None:
    _, _, error = read(section("<") + block("<", 3, bytes(8)))
    assert "without interface" in error


def test_writes_what_it_reads() -> None:
    sink = BytesIO()
    writer = PcapngWriter(sink)
    writer.secrets(b"CLIENT_RANDOM 1 2")
    first = writer.interface("client", comment="client leg")
    second = writer.interface("broker", link_type=101, comment="broker leg: 10.0.0.2")
    writer.packet(FRAME, START_NS + 1, interface=first, comment="marked")
    writer.packet(FRAME[:33], START_NS + 2, interface=second, length=60)
    found, source = packets(sink.getvalue())
    rows: list[tuple[Any, ...]] = [
        (p.time_ns - START_NS, p.data, p.length, p.link_type, p.interface) for p in found
    ]
    assert rows == [(1, FRAME, 60, 1, 0), (2, FRAME[:33], 60, 101, 1)]
    assert [each.comment for each in source.interfaces()] == ["client leg", "broker leg: 10.0.0.2"]
    assert source.secrets[0].data == b"CLIENT_RANDOM 1 2"
    with pytest.raises(ValueError, match="not declared"):
        writer.packet(FRAME, 1, interface=2)


def test_texts_that_are_no_utf_8_or_too_long_are_written() -> None:
    sink = BytesIO()
    writer = PcapngWriter(sink, "a\udcff")
    writer.interface("i\udcff", comment="c\udcff")
    writer.packet(FRAME, START_NS, comment="host\udced\udca0\udc80:9092")
    writer.packet(FRAME, START_NS, comment="x" + 40_000 * "é")
    data = sink.getvalue()
    found, source = packets(data)
    assert [each.data for each in found] == [FRAME, FRAME]
    (interface,) = source.formats[0].interfaces
    assert (interface.name, interface.comment) == (r"i\udcff", r"c\udcff")
    assert rb"host\udced\udca0\udc80:9092" in data
    long = ("x" + 0x7FFF * "é").encode()
    assert len(long) == 0xFFFF
    assert pack("<HH", 1, len(long)) + long in data


def test_a_connection_knows_the_comment_of_its_interface() -> None:
    events, _, _ = read(conversation(1).pcapng("broker leg"))
    assert {event.connection.interface_comment for event in events} == {"broker leg"}


def test_of_texts_about_interfaces_the_beginning_is_kept() -> None:
    long = {name: f"{name} ".encode() * 5_000 for name in ("comment", "name", "description")}
    found, source = packets(section("<") + interface("<", **long) + enhanced("<", 1))
    assert len(found) == 1
    (known,) = source.formats[0].interfaces
    assert known.name == ("name " * 5_000)[:1_000]
    assert known.comment == ("comment " * 5_000)[:1_000]
