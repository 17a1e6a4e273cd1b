"""Limits of memory, searches and waits for captures, networks and key logs.

Every length and count in a capture may be hostile. Tests hand in smaller limits, as an argument of
what they test.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class CaptureLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # --- files: pcap, pcapng, compressed files

    # A captured packet: dumpcap takes 256 KB, BIG TCP has 512 KB; a larger length is damage.
    packet_bytes: int = 16 << 20
    # The year 2225. Times and deadlines after them are stored in 64 bits, which a
    # hostile clock must not exceed.
    time_ns: int = (1 << 63) - (1 << 60)
    # Unreadable parts of one file. A file with more is noise, and each costs a search.
    gaps: int = 1_000
    # Places in 1 MB where records may go on after damage; the smallest record has 16 bytes.
    record_candidates: int = 1 << 16
    # Interfaces of a pcapng file. Hosts with many containers have thousands.
    interfaces: int = 1 << 16
    # Name, description or comment of an interface: the format allows 64 KB each.
    interface_text_bytes: int = 1_000
    # An option of a pcapng block: its length has 16 bits.
    option_bytes: int = 0xFFFF
    # Decryption secrets of a file. A connection of TLS 1.3 has 1,000 bytes.
    secrets_block_bytes: int = 64 << 20
    # Addresses of name resolution blocks that no reader has taken yet.
    resolved_names: int = 10_000
    # Packet comments of a file, of which the later half stays; characters of one.
    comments: int = 100_000
    # 50 brokers by name: a proxy's comment on the addresses of a cluster.
    comment_chars: int = 4_000
    # What a file expands to: so many times its size, and this much for nothing. Captures get ten
    # to a hundred times smaller; 3 KB of gzip in gzip can be gigabytes of zeros.
    inflated_ratio: int = 1_000
    inflated_free_bytes: int = 64 << 20
    # A file that a person or a tool wrote to be read whole; such files have some thousand.
    small_file_bytes: int = 16 << 20
    # Packets out of order by time: windows that one is held back, for a time stamp in the far
    # future would hold it for ever; bytes between two packets of a window, for skipped blocks end
    # it; packets of a window whose sequence numbers are compared.
    order_windows: int = 2
    order_hole_bytes: int = 1 << 20
    order_packets: int = 20_000
    # Messages of tcpdump or dumpcap on stderr that are read; the reason is one of few lines.
    tool_message_bytes: int = 1 << 16
    # MSS of packets that are composed: below the 65,535 bytes of IP, with room for headers.
    mss_bytes: int = 65_000

    # --- captures of one moment, merged

    # Capture points that are completed by each other: a client, some proxies and brokers.
    capture_points: int = 16
    # Distance at which the same packet is searched for. A fast retransmission, a round trip later,
    # is another packet.
    clock_spread_ns: int = 5_000_000_000
    # Packets of a capture point that wait for those of others: only where clocks jump.
    merged_packets: int = 1 << 21
    # Pairs of packets of one key that are compared.
    compared_pairs: int = 1 << 12

    # --- link layer, IP, DNS

    # VLAN and MPLS tags in a row; provider networks stack two or three.
    link_tags: int = 8
    # IPv6 extension headers. RFC 8200 has six, each once, and Destination Options twice.
    extension_headers: int = 16
    # Tunnels in tunnels: a cloud's mirror of an overlay network of containers makes three.
    tunnels: int = 4
    # Fragmented packets whose first fragment is remembered, or waited for; how long they belong
    # together: Linux waits 30 s, but fast links use identifications again in seconds (RFC 4963).
    fragmented_packets: int = 4_096
    fragment_life_ns: int = 2_000_000_000
    # Fragments that wait for one first fragment. At an MTU of 1500 a packet has 45, which come in
    # order, or backwards with two or three.
    fragments: int = 8
    # All that wait: a hostile clock may stand still, and records may be large.
    fragment_bytes: int = 16 << 20
    # Fragments that wait until their connection is known, where packets are exported.
    exported_fragments: int = 1_024
    # Records of a DNS message (real ones have some dozens); CNAMEs in a row (Unbound follows 11);
    # labels of a name with its pointers: 255 bytes hold no more.
    dns_records: int = 256
    dns_aliases: int = 16
    dns_labels: int = 128
    # A host name in DNS, in a name resolution block, in a ClientHello (RFC 1035, 2.3.4).
    host_chars: int = 255

    # --- TCP

    # The window scale that hosts use where a larger one is offered (RFC 7323, 2.3).
    window_scale: int = 14
    # Open connections, about 2 KB each; beyond it those that were silent longest end as idle.
    connections: int = 32_768
    # Connections without a response that are remembered, as one may be the leg of a proxy; those
    # that one may be the leg of: clients that start at once, with equal requests.
    relay_starts: int = 1_024
    relay_leaders: int = 16
    # Servers, and routes of proxies, that are remembered.
    relay_servers: int = 4_096
    # Kept in all, to compare and until it is decided.
    relay_bytes: int = 32 << 20
    # Bytes of a direction that wait: above the receive windows in use (Linux: 6 MB, tuned hosts
    # 16 to 32 MB). Of all: five such directions at once.
    direction_bytes: int = 32 << 20
    reassembly_bytes: int = 160 << 20
    # How late a packet may come. Drivers swap packets within a batch (well below 1 ms), a fast
    # retransmission takes a round trip: 100 ms is beyond both and still feels live. On a quiet line
    # time says little: the missing packet may be the next one in the file.
    reorder_ns: int = 100_000_000
    reorder_packets: int = 16
    # Without an ACK the sender sends again: its timeout (RFC 6298) starts at 200 ms to 1 s and
    # doubles.
    gap_timeout_ns: int = 2_000_000_000
    # Directions that are given to the process with the fewest packets; of others a hash decides,
    # which is as fair for so many.
    shared_flows: int = 4_096
    # The PROXY protocol: a line with its CR LF (its specification, 2.1); a binary header with
    # addresses and TLVs, of which the field allows 64 KB and HAProxy sends some hundred bytes.
    proxy_line_bytes: int = 107
    proxy_header_bytes: int = 16 + 8_192

    # --- key logs

    # A file: a million connections of TLS 1.3 take so many bytes, and no more secrets are kept.
    keylog_bytes: int = 1 << 30
    # Bytes without any line of a key log, before the file is none.
    keylog_useless_bytes: int = 16 << 20
    # Bytes of a growing file that are read at once, so that packets are read as well.
    keylog_read_bytes: int = 4 << 20
    # A line; the longest of use (a secret of 48 bytes) has 262.
    keylog_line_bytes: int = 1_024
    # Secrets: 220 MB of memory where each belongs to a connection of its own.
    secrets: int = 1_000_000

    # --- TLS: records, handshakes

    # The body of an encrypted record: RFC 5246, 6.2.3 and RFC 8446, 5.2.
    tls_record_bytes: int = (1 << 14) + 2_048
    tls13_record_bytes: int = (1 << 14) + 256
    # A handshake message, and the transcript up to the Finished; chains have some thousand bytes.
    # OpenSSL takes certificate chains of 100 KB (SSL_CTX_set_max_cert_list).
    handshake_bytes: int = 1 << 18
    # Extensions of a message: IANA has assigned some 60. Cipher suites of a ClientHello that are
    # kept: Java 7, which offers most, has 80.
    tls_extensions: int = 200
    cipher_suites: int = 100
    # A certificate that is described (usual ones have one or two thousand bytes), its names (one
    # for many hosts has a hundred), characters of a name.
    certificate_bytes: int = 1 << 14
    certificate_names: int = 100
    certificate_name_chars: int = 200
    # An encrypted alert: 2 bytes, 1 of type, a tag of 8 or 16. An empty Certificate has 25.
    alert_record_bytes: int = 24
    # Alerts that a connection's description lists.
    alerts: int = 4
    # Records of early data that wait for the ServerHello, which says how they are encrypted.
    early_records: int = 64
    # Records in a row that do not authenticate, before the next one that does is searched for.
    unauthentic_records: int = 3
    # Encrypted records of a handshake: they may pass before one has to fit the secret of
    # application data.
    handshake_records: int = 32
    # Records on which all secrets are tried where the ClientHello is missing: some may be of the
    # handshake. Records that may have passed unseen with one whose end only is missing.
    tried_records: int = 4
    coalesced_records: int = 4
    # Tickets and session ids of TLS 1.2 that are remembered, and the handshakes behind one; of
    # more, the oldest go.
    sessions: int = 100_000
    session_origins: int = 8

    # --- TLS: which secret fits, which sequence number

    # Sequence numbers of a record, and in one search after a gap; 65,536 take 2 ms with AES.
    sequences: int = 1 << 16
    search_sequences: int = 1 << 18
    # Sequence numbers after gaps, of all connections: some 30 s.
    gap_sequences: int = 10_000_000
    # Secrets tried without success on all connections without a handshake, each with its sequence
    # numbers: some 2 s.
    secret_trials: int = 1_200
    # The same of other suites than AES-GCM, in units of one such trial (2 ms): enough for the
    # secrets of 75 connections.
    rare_trials: int = 1_800
    # Secrets tried on connections of which one fits: 30 s with AES.
    fitting_trials: int = 15_000
    # Client randoms that no connection has claimed; of more, the oldest go. Claimed ones that are
    # passed over before the list is made anew.
    unclaimed_randoms: int = 100_000
    claimed_randoms: int = 1_000


LIMITS: Final = CaptureLimits()
