"""What the first bytes of a connection speak: the one table of signatures, for both sides.

Stateless; knows nothing of Kafka. It is asked about bytes that are odd already: a size that a
request or response could have may look like TLS or HTTP/2.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from kafkascope.captures.tls.begin import ALERTS, OLD_HELLO

Side: TypeAlias = Literal["client", "server", ""]
"""Who sends such bytes first; empty: either, or it is not known."""

# Of the first bytes, as many as are looked at: a request line of HTTP or RTSP with its version.
HEAD: Final = 256

# Of TLS and SSH, as many of the first bytes as a recording shows.
SHOWN_BYTES: Final = 16

TLS: Final = "TLS"
HTTP: Final = "HTTP"
SSH: Final = "SSH"
PROXY: Final = "PROXY protocol"
TEXT: Final = "plain text"
WORD: Final = "ZooKeeper's four-letter word"

# ZooKeeper's four-letter words that some release answers.
WORDS: Final = frozenset(
    {"conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "kill", "lead"}
    | {"mntr", "reqs", "ruok", "srst", "srvr", "stat", "stmk", "wchc", "wchp", "wchs"}
)


class Signature(NamedTuple):
    """A protocol and how it begins."""

    protocol: str
    expression: bytes
    """Matched at the first byte. Its group, where it has one, says nothing but what it is."""
    stand_in: bytes = b""
    """What may stand in place of the bytes where there is no group: with asterisks after it the
    signature is the same."""
    side: Side = ""

    @property
    def pattern(self) -> re.Pattern[bytes]:
        """The compiled expression. `re` keeps it: compiled with the table, the forty expressions
        would add 2.5 ms to every start, and most captures need none of them."""
        return re.compile(self.expression, re.DOTALL)


_METHODS: Final = (
    rb"GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI|PROPFIND|PROPPATCH|MKCOL|REPORT"
)
_LINE: Final = rb"[A-Z_]{3,16} [^\r\n ]{1,200} "
_WORDS: Final = "|".join(sorted(WORDS)).encode()

# The order decides where one form is a special case of another: a request of RTSP is one of HTTP
# but for its version, and all that is readable is text. Sources: RFC 8446, 6101 (SSLv2 hello),
# 9112, 9113, 2326, 3261, 4253, 5321, 959, 1939, 9051, 4511, 854, 1035; HAProxy's
# proxy-protocol.txt; the manuals of MySQL, PostgreSQL, Redis, MongoDB, AMQP 0-9-1, MQTT, NATS and
# STOMP; Java's RMI wire protocol.
SIGNATURES: Final[tuple[Signature, ...]] = (
    Signature(TLS, rb"([\x14-\x18]\x03[\x00-\x04])"),
    Signature(TLS, OLD_HELLO.pattern, b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10"),
    Signature(f"{PROXY} v1", rb"(PROXY (?:TCP[46]|UNKNOWN))"),
    Signature(f"{PROXY} v2", rb"(\r\n\r\n\x00\r\nQUIT\n)"),
    Signature("RTSP", _LINE + rb"RTSP/|RTSP/\d", b"RTSP/1"),
    Signature("RTSP", rb"(DESCRIBE|SETUP|TEARDOWN|GET_PARAMETER|SET_PARAMETER) rtsp"),
    Signature("SIP", _LINE + rb"SIP/\d|SIP/\d", b"SIP/2"),
    Signature("NATS", rb"((?:CONNECT|INFO) \{)"),
    Signature(HTTP, rb"((?:" + _METHODS + rb") |HTTP/\d)"),
    Signature(
        "HTTP/2",
        rb"(\x00\x00[\x00\x06\x0c\x12\x18\x1e\x24\x2a]\x04\x00\x00\x00\x00\x00"
        rb"|\x00\x00\x08\x07\x00\x00\x00\x00\x00)",
        side="server",
    ),
    Signature(SSH, rb"(SSH-\d)"),
    Signature("AMQP", rb"(AMQP[\x00-\x03])"),
    Signature("JRMI", rb"(JRMI\x00[\x01\x02][KLM])"),
    Signature("JRMI", rb"(N\x00)[\x01-\x40][0-9A-Za-z.:-]{3}", b"N\x00\x09127.0.0.1", "server"),
    Signature("Java serialization", rb"(\xac\xed\x00\x05)"),
    Signature("Redis", rb"\*\d{1,5}\r\n\$\d{1,5}\r\n", b"*1\r\n$4\r\n", "client"),
    Signature("Redis", rb"(?i:(PING|INFO|QUIT|COMMAND))[^\r\n]{0,40}\r?\n", b"PING\r\n", "client"),
    Signature(
        "Redis",
        rb"(\+PONG|\+OK\r\n|-(?:ERR|DENIED|NOAUTH|NOPERM|WRONGPASS|LOADING|MISCONF|READONLY|MOVED"
        rb"|CLUSTERDOWN|MASTERDOWN|BUSY)\b)",
        side="server",
    ),
    Signature("POP3", rb"(\+OK )", side="server"),
    Signature("IMAP", rb"(\* (?:OK|PREAUTH|BYE) )", side="server"),
    Signature("SMTP", rb"((?i:EHLO|HELO|LHLO) )", side="client"),
    Signature(
        "SMTP",
        rb"[245]\d\d[ -](?:[^\r\n]{0,120}SMTP|\d\.\d{1,3}\.\d{1,3}[ \r\n])",
        b"220 SMTP",
        "server",
    ),
    Signature("FTP", rb"[245]\d\d[ -][^\r\n]{0,120}FTP", b"220 FTP", "server"),
    Signature("SMTP or FTP", rb"((?:220|421|500|501|502|503|530|554)[ -])", side="server"),
    Signature(
        "MySQL",
        rb"[\x01-\xff][\x00-\x03]\x00[\x00-\x03](?:\x0a\d{1,2}\.|\xff.[\x03-\x10])",
        b"J\x00\x00\x00\x0a8.",
        "server",
    ),
    Signature(
        "PostgreSQL",
        rb"(\x00\x00\x00\x08\x04\xd2\x16[\x2f\x30]|\x00\x00\x00\x10\x04\xd2\x16\x2e)",
        side="client",
    ),
    Signature(
        "PostgreSQL",
        rb"\x00\x00[\x00-\x0f].\x00\x03\x00[\x00-\x02]"
        rb"(?:user|database|application_name|client_encoding|options|replication)\x00",
        b"\x00\x00\x00\x2a\x00\x03\x00\x00user\x00",
        "client",
    ),
    Signature(
        "PostgreSQL",
        rb"E\x00\x00[\x00-\x0f].S[^\x00]{3,30}\x00|R\x00\x00\x00[\x08-\x40]\x00\x00\x00[\x00-\x0c]",
        b"E\x00\x00\x00\x2aSFATAL\x00",
        "server",
    ),
    Signature(
        "LDAP",
        rb"0(?:[\x05-\x7f]|\x81.|\x82..|\x83...|\x84....)\x02(?:\x01.|\x02..|\x03...|\x04....)"
        rb"[\x42\x4a\x50\x60\x61\x63-\x6f\x73\x77-\x79]",
        b"0\x0c\x02\x01\x01\x60",
    ),
    Signature(
        "MongoDB",
        rb"[\x10-\xff].\x00\x00.{8}(?:\xd4\x07|\xdd\x07)\x00\x00",
        b"\x3a\x00\x00\x00********\xd4\x07\x00\x00",
    ),
    Signature(
        "MQTT", rb"\x10[\x0a-\xff][\x01-\x7f]?\x00(?:\x04MQTT|\x06MQIsdp)", b"\x10\x10\x00\x04MQTT"
    ),
    Signature("STOMP", rb"((?:CONNECT|STOMP|CONNECTED|ERROR)\r?\n)[a-z]", b"ERROR\nm"),
    Signature("OpenWire", rb"(\x00\x00..\x01ActiveMQ)", b"\x00\x00\x01\x00\x01ActiveMQ"),
    Signature("Elasticsearch's transport", rb"(ES\x00\x00)"),
    Signature("Telnet", rb"(\xff[\xfb-\xfe])"),
    Signature("RDP", rb"(\x03\x00\x00[\x07-\xff].\xe0)", b"\x03\x00\x00\x0b\x06\xe0", "client"),
    Signature("SMB", rb"\x00\x00..[\xfe\xff]SMB", b"\x00\x00\x00\x2f\xffSMB"),
    Signature("VNC", rb"(RFB \d)"),
    Signature(
        "DNS",
        rb"\x00[\x10-\xff]..[\x00\x01]\x00\x00\x01\x00\x00\x00\x00\x00[\x00\x01]",
        b"\x00\x1e\x00\x06\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00",
        "client",
    ),
    Signature(WORD, rb"(" + _WORDS + rb")[\s*]*\Z", side="client"),
    Signature(
        "ZooKeeper", rb"(imok|This ZooKeeper |Zookeeper version|ZooKeeper version)", side="server"
    ),
    Signature(TEXT, rb"(?!\*+\Z)[\t\n\r\x1b\x20-\x7e]+\Z", b"text"),
)

_STATUS: Final = re.compile(rb"HTTP/\d(?:\.\d)? \d\d\d[ -~]{0,40}|SSH-[\d.]+-[!-~]{1,40}")
"""First lines that are safe to repeat: a status, and the name of a program."""

_AMID: Final = (
    rb"(?:" + _METHODS + rb") [^\r\n ]{1,200} (?:HTTP|RTSP|SIP)/\d|(?:HTTP|RTSP|SIP)/\d\.\d \d\d\d "
    rb"|\x00\x00[\x06\x0c\x12\x18\x1e\x24\x2a]\x04\x00\x00\x00\x00\x00\x00[\x01-\x06]"
    rb"|\x15\x03[\x00-\x04]\x00\x02[\x01\x02]|SSH-\d\.\d|AMQP[\x00-\x03][\x00\x01][\x00-\x09]"
    rb"|JRMI\x00[\x01\x02][KLM]|RFB \d{3}\.\d|INFO \{\"server_id\""
    rb"|\*\d{1,5}\r\n\$\d{1,5}\r\n|-DENIED Redis "
    rb"|.[\x00-\x03]\x00[\x00-\x03](?:\x0a\d{1,2}\.\d{1,2}\.|\xff..(?:#\w{5})?(?:Host|Too many) )"
    rb"|\x00\x00\x00\x08\x04\xd2\x16[\x2f\x30]|E\x00\x00[\x00-\x0f].S(?:FATAL|ERROR|PANIC)\x00"
    rb"|\x00\x00[\x00-\x0f].\x00\x03\x00[\x00-\x02](?:user|database)\x00|\x00\x00..[\xfe\xff]SMB"
    rb"|0[\x05-\x7f]\x02\x01[\x00-\x7f](?:\x60.\x02\x01\x03|\x78.\x0a\x01)|\x00\x00..\x01ActiveMQ"
    rb"|\x10[\x0a-\xff][\x01-\x7f]?\x00(?:\x04MQTT|\x06MQIsdp)"
    rb"|[\t\n\r\x20-\x7e]{0,254}\n\Z|(?:imok|" + _WORDS + rb")\Z"
)
"""Forms with which no payload of Kafka goes on, for streams of which the beginning is not known:
five fixed bytes and more, or a line of text that is all that was sent. The marks of RMI's answers,
Telnet, MongoDB, RDP, and Java serialization are too short."""


def signature_of(data: bytes | bytearray, side: Side = "") -> Signature | None:
    """Return the signature of the first bytes that a side sent; None for what has none."""
    head = bytes(data[:HEAD])
    for each in SIGNATURES:
        if (not side or not each.side or each.side == side) and each.pattern.match(head):
            return each
    return None


def sign_of(data: bytes | bytearray, side: Side = "") -> bytes:
    """Return bytes by which the same protocol is known, and nothing of the content. Empty where
    there is no signature."""
    head = bytes(data[:HEAD])
    found = signature_of(head, side)
    if found is None:
        return b""
    match = found.pattern.match(head)
    sign = match.group(1) if match is not None and found.pattern.groups else None
    whole = sign is not None and found.pattern.match(sign + b"*") is not None
    return sign if sign is not None and whole else found.stand_in[: len(head)]


def shown_of(data: bytes | bytearray, side: Side = "") -> bytes:
    """Return the part of the first bytes that a recording may show: of HTTP the status line, of TLS
    and SSH the first 16 bytes, else `sign_of`. What follows may be secret."""
    head = bytes(data[:HEAD])
    found = signature_of(head, side)
    if found is not None and found.protocol in (TLS, SSH):
        return head[:SHOWN_BYTES]
    line = _STATUS.match(head)
    return sign_of(head, side) if line is None else line.group()


def protocol_of(data: bytes | bytearray, side: Side = "") -> str:
    """Return the name of what the first bytes of a side speak; empty where there is no
    signature."""
    found = signature_of(data, side)
    if found is None or found.protocol != WORD:
        return "" if found is None else found.protocol
    return f"{WORD} {bytes(data[:4]).decode('ascii')}"


def words_amid(data: bytes | bytearray, side: Side) -> str:
    """Return `words_of` bytes that need not be the first ones of their side: empty where Kafka
    could go on with such bytes."""
    known = re.match(_AMID, bytes(data[:HEAD]), re.DOTALL)
    return words_of(data, side) if known else ""


def words_of(data: bytes | bytearray, side: Side = "") -> str:
    """Return what the first bytes of a side speak: `SSH: SSH-2.0-OpenSSH_9.6`, with what they say
    of it where that can be read and is safe to repeat. Empty where there is no signature.
    Asterisks after it are what a recording masks."""
    head = bytes(data[:HEAD])
    found = signature_of(head, side)
    if found is None:
        return ""
    line = _STATUS.match(head)
    if line is not None:
        return f"{found.protocol}: {line.group().decode('ascii').rstrip(' *')}"
    if found.protocol == TLS and head[0] == 21 and head[3:5] == b"\0\2" and len(head) > 6:
        return f"{TLS}: alert {ALERTS.get(head[6], str(head[6])).replace('_', ' ')}"
    return found.protocol
