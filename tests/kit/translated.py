"""A connection that a capture holds before and after address translation."""

from io import BytesIO
from ipaddress import ip_address
from struct import pack

from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.model import Endpoint
from tests.kit.captures import Tape

CLIENT, SERVICE, POD, NODE = (
    Endpoint("10.244.1.7", 40000),
    Endpoint("10.96.0.10", 9092),
    Endpoint("10.244.2.9", 19092),
    Endpoint("172.18.0.3", 61001),
)


WIDE = {
    CLIENT: Endpoint("fd00::7", 40000),
    SERVICE: Endpoint("fd00::10", 9092),
    POD: Endpoint("fd00::9", 19092),
    NODE: Endpoint("fd00::3", 61001),
}


WAYS = {"dnat": (CLIENT, POD), "snat": (NODE, SERVICE), "both": (NODE, POD)}


def translated(
    frame: bytes, old: tuple[Endpoint, Endpoint], new: tuple[Endpoint, Endpoint]
) -> bytes:
    """A frame with other addresses; a checksum of its own, as translation makes it."""
    data = bytearray(frame)
    wide = data[14] >> 4 == 6
    size, at, tcp = (16, 22, 54) if wide else (4, 26, 34)
    known = dict(zip(old, new, strict=True))
    for end in range(2):
        host = slice(at + end * size, at + end * size + size)
        port = slice(tcp + 2 * end, tcp + 2 * end + 2)
        one = Endpoint(str(ip_address(bytes(data[host]))), int.from_bytes(data[port], "big"))
        data[host] = ip_address(known[one].host).packed
        data[port] = pack(">H", known[one].port)
    data[tcp + 16 : tcp + 18] = pack(
        ">H", (int.from_bytes(data[tcp + 16 : tcp + 18], "big") + 7) % 65535
    )
    return bytes(data)


def made(way: str, *, wide: bool = False, skip: int = 0, resend: int = 0) -> tuple[Tape, Tape]:
    """A conversation, and the capture of it on all interfaces of the node that translates."""
    old, new = (CLIENT, SERVICE), WAYS[way]
    if wide:
        old, new = (WIDE[old[0]], WIDE[old[1]]), (WIDE[new[0]], WIDE[new[1]])
    once, twice = Tape(), Two()
    composer = Composer(*old, isn=(0xFFFF_FF00, 12345))
    once.add(composer.open())
    for number in range(12):
        once.now_ns += 3_000_000
        sent = composer.send(0, bytes([number]) * 100)
        once.add(sent)
        if number < resend:
            once.now_ns += 200_000_000
            once.add(sent[:1])
        once.add(composer.send(1, bytes([number]) * 3_000))
    once.add(composer.close(0) + composer.close(1))
    for time_ns, frame in once.frames[skip:]:
        pair = [(time_ns, frame), (time_ns + 4_000, translated(frame, old, new))]
        if frame[36:38] == pack(">H", 40000):  # to the client: the other way round
            pair = [(time_ns, pair[1][1]), (time_ns + 4_000, frame)]
        twice.frames += pair
    once.frames = once.frames[skip:]
    return once, twice


class Two(Tape):
    """Frames of two interfaces in turn."""

    def pcap(self, **_: object) -> bytes:
        sink = BytesIO()
        writer = PcapngWriter(sink)
        ends = [writer.interface("veth7"), writer.interface("eth0")]
        for time_ns, frame in self.frames:
            writer.packet(frame, time_ns, interface=ends[is_other(frame)])
        return sink.getvalue()


def is_other(frame: bytes) -> bool:
    """Whether a frame has translated addresses."""
    hosts = {frame[26:30], frame[30:34]} | {frame[22:38], frame[38:54]}
    return any(ip_address(end.host).packed in hosts for end in (POD, NODE, WIDE[POD], WIDE[NODE]))
