"""First bytes of each protocol, by side and name."""

from __future__ import annotations

from kafkascope.captures.signatures import Side

CLIENTS = {
    b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x01": "TLS",
    b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10": "TLS",
    b"\x80\x64\x01\x03\x01\x00\x4b\x00\x00\x00\x10": "TLS",
    b"GET / HTTP/1.0\r\n\r\n": "HTTP",
    b"OPTIONS / HTTP/1.0\r\n\r\n": "HTTP",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": "HTTP",
    b"OPTIONS / RTSP/1.0\r\n\r\n": "RTSP",
    b"OPTIONS sip:nm SIP/2.0\r\nVia: SIP/2.0/TCP nm": "SIP",
    b"SSH-2.0-OpenSSH_9.6\r\n": "SSH",
    b"PROXY TCP4 203.0.113.9 10.0.0.5 51234 9092\r\n": "PROXY protocol v1",
    b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0": "PROXY protocol v2",
    b"AMQP\0\0\x09\x01": "AMQP",
    b"AMQP\x03\x01\0\0": "AMQP",
    b"JRMI\0\2K": "JRMI",
    b"\xac\xed\0\5sr": "Java serialization",
    b"*1\r\n$4\r\nPING\r\n": "Redis",
    b"PING\r\n": "Redis",
    b"EHLO scanner.example\r\n": "SMTP",
    b"\0\0\0\x08\x04\xd2\x16\x2f": "PostgreSQL",
    b"\0\0\0\x22\0\3\0\0user\0postgres\0database\0x\0\0": "PostgreSQL",
    b"0\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\0\x80\0": "LDAP",
    b"0\x84\0\0\0-\x02\x01\x07cxxxx": "LDAP",
    b"\x3a\0\0\0\1\0\0\0\0\0\0\0\xd4\x07\0\0\0\0\0\0admin.$cmd": "MongoDB",
    b"\x10\x10\0\x04MQTT\x04\x02\0\x3c\0\x04abcd": "MQTT",
    b"\3\0\0\x0b\x06\xe0\0\0\0\0\0": "RDP",
    b"\0\0\0\xa4\xffSMBr\0\0\0\0\x08": "SMB",
    b"ruok": "ZooKeeper's four-letter word ruok",
    b"mntr\n": "ZooKeeper's four-letter word mntr",
    b"\r\n\r\n": "plain text",
    b"MGLNDD_10.0.0.5_9092\n": "plain text",
    b"help\r\n": "plain text",
}


SERVERS = {
    b"HTTP/1.1 503 Service Unavailable\r\n\r\n": "HTTP",
    b"\0\0\x12\x04\0\0\0\0\0\0\3\0\0\0\x80": "HTTP/2",
    b"\x15\3\3\0\2\2\x0a": "TLS",
    b"\x15\3\1\0\2\2\x46": "TLS",
    b"SSH-2.0-dropbear\r\n": "SSH",
    b"AMQP\0\0\x09\x01": "AMQP",
    b"-ERR unknown command\r\n": "Redis",
    b"-DENIED Redis is running in protected mode": "Redis",
    b"+OK\r\n": "Redis",
    b"+OK POP3 ready\r\n": "POP3",
    b"* OK [CAPABILITY IMAP4rev1] ready\r\n": "IMAP",
    b"220 mail.example ESMTP Postfix\r\n": "SMTP",
    b"500 5.5.2 Error: bad syntax\r\n": "SMTP",
    b"220 (vsFTPd 3.0.5)\r\n": "FTP",
    b"220 ready\r\n": "SMTP or FTP",
    b"J\0\0\0\x0a8.0.36\0\x08\0\0\0": "MySQL",
    b"Y\0\0\0\x0a5.5.5-10.11.6-MariaDB\0": "MySQL",
    b"E\0\0\0\xff\x6a\x04Host '10.0.0.4' is not allowed": "MySQL",
    b"E\0\0\0\x8cSFATAL\0VFATAL\0C0A000\0Munsupported frontend protocol 18.3\0\0": "PostgreSQL",
    b"0\x24\x02\x01\0\x78\x1f\x0a\1\2\4\0": "LDAP",
    b"N\0\x0910.0.0.4\0\0\xc0\1": "JRMI",
    b"RTSP/1.0 400 Bad Request\r\n": "RTSP",
    b"RFB 003.008\n": "VNC",
    b"\xff\xfd\x18\xff\xfd\x20": "Telnet",
    b'INFO {"server_id":"N"} \r\n': "NATS",
    b"imok": "ZooKeeper",
    b"This ZooKeeper instance is not currently serving requests\n": "ZooKeeper",
    b"Too many connections\r\n": "plain text",
}


ALL: list[tuple[Side, bytes, str]] = [
    *(("client", data, name) for data, name in CLIENTS.items()),
    *(("server", data, name) for data, name in SERVERS.items()),
]
