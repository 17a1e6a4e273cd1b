"""Limits of the state of statistics, and of their tables and sentences.

Beyond a limit of keys their sums go to others (`analyzer.merging.tables`); of lists the rest is
counted. Tests hand in smaller limits, as an argument of what they test.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class StatisticsLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # --- exchanges that wait to be counted many at a time

    # The messages of those that wait stay in memory, with their records, as long.
    waiting_exchanges: int = 4_096
    waiting_bytes: int = 4 << 20

    # --- time, producers of topics

    # Slices of the traffic, an hour of seconds; of more, each becomes wider.
    slices: int = 3_600
    # Distinct producers of a topic in log files: 8 bytes each.
    topic_producers: int = 100_000
    # Producers, and transactional ids, whose sequences are followed; partitions of a transaction.
    producers: int = 2_000
    transaction_partitions: int = 100

    # --- the cluster: nodes, partitions, addresses

    # Partitions whose leader is followed; listeners of nodes, coordinators, registrations.
    led_partitions: int = 50_000
    listeners: int = 20_000
    # Addresses that brokers advertised or clients contacted; host names, of which each may have 64
    # addresses.
    addresses: int = 50_000
    host_names: int = 10_000
    # Distinct connections of a client to an address.
    connection_starts: int = 64
    # Partitions of an exchange that are looked at, for the node that serves them.
    witness_partitions: int = 4
    # What may be an address, with its zone: a host name has 255 characters at most (RFC 1035).
    address_chars: int = 255
    # What a broker registers in ZooKeeper: its number and its ports have 32 bits, ten digits.
    broker_digits: int = 10
    broker_listeners: int = 20

    # --- groups

    groups: int = 1_000
    # Members times generations.
    presences: int = 20_000
    # Topics of a subscription, members of an assignment, that an event keeps.
    event_members: int = 100

    # --- what groups fetched and committed

    # Partitions by reader and by group; members.
    reads: int = 5_000
    commits: int = 5_000
    members: int = 5_000
    # Generations whose plan is audited, and the members or partitions of one.
    plans: int = 1_000
    plan_members: int = 2_000
    # Partitions whose log start and end are followed, and slots of time of one: when there are
    # more, slots become twice as wide.
    log_bounds: int = 2_000
    log_slots: int = 64
    # Periods of polls, and fetches without records, of a reader in a partition. A reader that waits
    # at the end of a log has a new position after each record.
    periods: int = 500
    positions: int = 100
    # An offset as text: 64 bits.
    offset_digits: int = 19
    # Registries count ids from 1; a larger number is another format that begins with a zero.
    schema_id: int = 10_000_000
    # Threads of a group for one topic (consumers of 0.8). Larger groups are not audited.
    group_threads: int = 10_000

    # --- applications and journeys of records

    # Applications by topic and group.
    edges: int = 10_000
    # What is known of records that are followed: some five moments of each of 1,000 ways.
    journey_moments: int = 20_000
    # Ranges of acquired records in one response about a partition: brokers send one for each batch.
    acquired_ranges: int = 1_000

    # --- ZooKeeper

    # Nodes, and changes of all nodes, of which the latest stay.
    znodes: int = 10_000
    znode_changes: int = 20_000
    # Names of one list of children.
    znode_children: int = 1_000
    # Of a node's data: what Kafka registers of a broker has some 300 characters.
    znode_chars: int = 600
    zookeeper_sessions: int = 5_000
    slow_requests: int = 50
    # Groups of servers that are compared, each with each; ensembles have fewer than ten.
    server_groups: int = 64
    # Threads of one consumer for one topic.
    consumer_streams: int = 1_000
    # The number of a partition: brokers have far fewer than 100,000.
    partition_digits: int = 5
    # Members, owners and partitions that are looked at, for what all groups owned when a member
    # joined or left: some seconds. Of groups for which that is not enough the first changes are.
    ownership_looks: int = 5_000_000

    # --- what tables, drawings and sentences show

    # Columns of a text or a list in a table, as long as there are columns without room.
    cell_columns: int = 40
    # Topics and edges of a drawing: Mermaid draws nothing of more edges than this (`maxEdges`).
    drawn_topics: int = 200
    drawn_edges: int = 500
    # A topic's name in a map of a terminal.
    topic_columns: int = 40
    # What is beside it: way, records, bytes and rate.
    edge_columns: int = 48
    # Client ids of an application, and others of its attributes, that are named.
    named_attributes: int = 6
    # Lanes of a timeline, the latest members, and the name of one.
    lanes: int = 60
    lane_columns: int = 24
    # Members in a sentence about a rebalance; addresses of a host name; servers in the name of an
    # ensemble; partitions with another owner than the assignor's; names in a list of ZooKeeper's.
    named_members: int = 4
    named_addresses: int = 3
    named_servers: int = 3
    named_partitions: int = 3
    named_znodes: int = 50


LIMITS: Final = StatisticsLimits()
