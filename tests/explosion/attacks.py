"""All hostile captures: little that pretends, or expands, to be much. Each grows with one number,
so that what a command takes at n and at 2n tells how it grows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.explosion import bodies, encrypted, many, packets, records, schemas, zookeeper
from tests.explosion.declared import long_array
from tests.explosion.encrypted import write_encrypted
from tests.explosion.packets import write_blocks, write_slowly
from tests.explosion.schemas import write_http
from tests.explosion.turns import Turn, write_capture, write_packets


def write_conversations(path: Path, made: list[Turn] | Iterator[list[Turn]]) -> None:
    """A pcapng with one connection, or with several."""
    write_capture(path, [made] if isinstance(made, list) else made)


class Attack(NamedTuple):
    """One way to make much of little, and the size at which it hurts about a second."""

    make: Callable[[int], Any]
    size: int
    write: Callable[[Path, Any], object] = write_conversations


ATTACKS: Final[dict[str, Attack]] = {
    "headers": Attack(records.headers, 20_000),
    "empty records": Attack(records.empty_records, 200_000),
    "fetched records": Attack(records.fetched_records, 200_000),
    "batches": Attack(records.plain_batches, 20_000),
    "fetched batches": Attack(records.fetched_batches, 20_000),
    "old messages": Attack(records.old_messages, 50_000),
    "nested sets": Attack(records.nested_sets, 5_000),
    "gzip in gzip": Attack(records.gzip_in_gzip, 100_000),
    "gzip": Attack(records.bomb(1), 10_000_000),
    "snappy": Attack(records.bomb(2), 10_000_000),
    "lz4": Attack(records.bomb(3), 10_000_000),
    "zstd": Attack(records.bomb(4), 10_000_000),
    "many bombs": Attack(records.many_bombs, 10),
    "large record": Attack(records.large_record, 10_000_000),
    "large text": Attack(records.large_text, 10_000_000),
    "long varints": Attack(records.long_varints, 100_000),
    "internal records": Attack(records.internal_records, 20_000),
    "control batches": Attack(records.control_batches, 10_000),
    "aborted transactions": Attack(records.aborted, 10_000),
    "listed transactions": Attack(
        long_array("Fetch", 11, "Response", "responses", "partitions", "aborted_transactions"),
        400_000,
    ),
    "scram records": Attack(records.scram_records, 5_000),
    "empty topics": Attack(bodies.empty_topics, 250_000),
    "topics": Attack(long_array("Metadata", 12, "Response", "topics"), 50_000),
    "partitions": Attack(long_array("Metadata", 12, "Response", "topics", "partitions"), 50_000),
    "replicas": Attack(
        long_array("Metadata", 12, "Response", "topics", "partitions", "replica_nodes"), 100_000
    ),
    "produced topics": Attack(bodies.produced_topics, 200_000),
    "named topics": Attack(bodies.named_topics, 10_000),
    "tags": Attack(bodies.tags, 60_000),
    "header tags": Attack(bodies.header_tags, 60_000),
    "acls": Attack(long_array("DescribeAcls", 2, "Response", "resources", "acls"), 30_000),
    "configs": Attack(long_array("DescribeConfigs", 4, "Response", "results", "configs"), 20_000),
    "created topics": Attack(long_array("CreateTopics", 4, "Request", "topics"), 20_000),
    "members": Attack(bodies.members, 10_000),
    "subscription": Attack(bodies.subscription, 50_000),
    "assignments": Attack(bodies.assignments, 5_000),
    "commits": Attack(long_array("OffsetCommit", 6, "Request", "topics", "partitions"), 50_000),
    "envelopes": Attack(bodies.envelopes, 200),
    "long names": Attack(bodies.long_names, 200),
    "tiny frames": Attack(many.tiny_frames, 20_000),
    "unanswered": Attack(many.unanswered, 20_000),
    "orphans": Attack(many.orphans, 20_000),
    "empty frames": Attack(many.empty_frames, 50_000),
    "clients": Attack(many.clients, 10_000),
    "groups": Attack(many.groups, 10_000),
    "long client ids": Attack(many.long_client_ids, 200),
    "sessions": Attack(many.sessions, 1_000),
    "producers": Attack(many.producers, 10_000),
    "tokens": Attack(many.tokens, 5_000),
    "connections": Attack(many.connections, 3_000),
    "api versions": Attack(long_array("ApiVersions", 0, "Response", "api_keys"), 50_000),
    "nodes": Attack(long_array("Metadata", 5, "Response", "brokers"), 20_000),
    "produced": Attack(many.produced, 10_000),
    "transactions": Attack(many.transactions, 10_000),
    "hanging transactions": Attack(many.hanging, 5_000),
    "missing sequences": Attack(many.missing, 5_000),
    "joins": Attack(many.joins, 10_000),
    "rejoins": Attack(many.rejoins, 10_000),
    "returns": Attack(many.returns, 10_000),
    "errors": Attack(many.errors, 20_000),
    "many clients": Attack(many.clients, 50_000),
    # Beyond 50,000 requests that wait each is given up, and its answer left out.
    "many groups": Attack(many.groups, 200_000),
    "many unanswered": Attack(many.unanswered, 100_000),
    "unanswered on many": Attack(many.unanswered_on_many, 150_000),
    "many connections": Attack(many.connections, 60_000),
    "large sessions": Attack(many.large_sessions, 400_000),
    "growing sessions": Attack(many.growing_sessions, 10_000),
    "log ends": Attack(many.log_ends, 400_000),
    "many long client ids": Attack(many.long_client_ids, 4_000),
    "many long names": Attack(many.many_long_names, 2_000),
    "every second": Attack(packets.every_second, 10_000, write_packets),
    "one byte": Attack(packets.one_byte, 100_000, write_packets),
    "overlaps": Attack(packets.overlaps, 30_000, write_packets),
    "descending": Attack(packets.descending, 20_000, write_packets),
    "descending on many": Attack(packets.descending_on_many, 400_000, write_packets),
    "many brokers": Attack(packets.brokers, 50_000, write_packets),
    "hellos": Attack(packets.hellos, 6_000, write_packets),
    "fragments": Attack(packets.fragments, 20_000, write_packets),
    "outages": Attack(packets.outages, 1_500, write_slowly),
    "outages of many": Attack(packets.outages_of_many, 1_500, write_slowly),
    "scan": Attack(packets.scan, 100_000, write_packets),
    "unreachable": Attack(packets.unreachable, 50_000, write_packets),
    "tunnels": Attack(packets.tunnels, 50_000, write_packets),
    "DNS answers": Attack(packets.dns_answers, 10_000, write_packets),
    "comments": Attack(packets.comments, 200_000, write_blocks),
    "options": Attack(packets.options, 200_000, write_blocks),
    "names": Attack(packets.resolved_names, 100_000, write_blocks),
    "TLS tiny records": Attack(encrypted.tiny_records, 100_000, write_encrypted),
    "TLS empty records": Attack(encrypted.empty_records, 200_000, write_encrypted),
    "TLS empty messages": Attack(encrypted.bare_headers(22), 400_000, write_encrypted),
    "TLS empty data": Attack(encrypted.bare_headers(23), 400_000, write_encrypted),
    "TLS new keys": Attack(encrypted.updates, 50_000, write_encrypted),
    "TLS padding": Attack(encrypted.padded, 4_000, write_encrypted),
    "TLS bad records": Attack(encrypted.bad_records, 20_000, write_encrypted),
    "TLS headers": Attack(encrypted.signs, 200_000, write_encrypted),
    "TLS headers in bytes": Attack(encrypted.signs_in_bytes, 80_000, write_encrypted),
    "TLS in bytes": Attack(encrypted.in_bytes, 100_000, write_encrypted),
    "TLS tickets": Attack(encrypted.old_tickets, 10_000, write_encrypted),
    "TLS renegotiations": Attack(encrypted.renegotiations, 3_000, write_encrypted),
    "TLS large hellos": Attack(encrypted.large_hellos, 200, write_encrypted),
    "TLS long names": Attack(encrypted.long_names, 1_000, write_encrypted),
    "TLS large certificates": Attack(encrypted.large_certificates, 500, write_encrypted),
    "TLS certificates of many names": Attack(encrypted.many_names, 200, write_encrypted),
    "TLS tiny messages": Attack(encrypted.tiny_messages, 20, write_encrypted),
    "TLS early data": Attack(encrypted.early, 200, write_encrypted),
    "TLS secrets blocks": Attack(encrypted.secrets_blocks, 100, write_encrypted),
    "TLS found secrets": Attack(encrypted.found_secrets, 100, write_encrypted),
    "TLS other labels": Attack(encrypted.odd_blocks, 200_000, write_encrypted),
    "schemas": Attack(schemas.subjects, 20_000),
    "JSON schemas": Attack(schemas.json_subjects, 10_000),
    "Protobuf schemas": Attack(schemas.proto_subjects, 10_000),
    "schemas of one id": Attack(schemas.texts_of_one_id, 4_000),
    "subjects of one schema": Attack(schemas.subjects_of_one_schema, 20_000),
    "schemas that are joined": Attack(schemas.joined_ids, 10_000),
    "refused schemas": Attack(schemas.refused_schemas, 6_000),
    "fields": Attack(schemas.many_fields, 100_000),
    "items": Attack(schemas.items, 1_000_000),
    "records in items": Attack(schemas.records_of_items, 300_000),
    "large union": Attack(schemas.large_union, 2_000),
    "versions": Attack(schemas.versions, 1_000),
    "references": Attack(schemas.references, 500),
    "Protobuf fields": Attack(schemas.proto_fields, 100_000),
    "Protobuf messages": Attack(schemas.proto_messages, 5_000),
    "JSON values": Attack(schemas.json_values, 200_000),
    "JSON properties": Attack(schemas.json_schemas, 5_000),
    "HTTP schemas": Attack(schemas.http_schemas, 10_000, write_http),
    "HTTP registries": Attack(schemas.registries, 10_000, write_http),
    "HTTP missing schemas": Attack(schemas.http_missing, 20_000, write_http),
    "HTTP lists": Attack(schemas.http_list, 2_500_000, write_http),
    "HTTP bombs": Attack(schemas.http_bombs, 50, write_http),
    "HTTP large schemas": Attack(schemas.http_large, 100, write_http),
    "HTTP headers": Attack(schemas.http_headers, 1_000_000, write_http),
    "HTTP one header": Attack(schemas.http_one_header, 200, write_http),
    "HTTP chunks": Attack(schemas.http_chunks, 500_000, write_http),
    "HTTP body": Attack(schemas.http_body, 20_000_000, write_http),
    "HTTP lines": Attack(schemas.http_lines, 500_000, write_http),
    "HTTP small messages": Attack(schemas.http_small, 50_000, write_http),
    "HTTP connections": Attack(schemas.http_connections, 2_000, write_http),
    "ZooKeeper nodes": Attack(zookeeper.nodes, 20_000),
    "ZooKeeper deep nodes": Attack(zookeeper.deep, 5_000),
    "ZooKeeper deep path": Attack(zookeeper.deep_path, 50_000),
    "ZooKeeper operations": Attack(zookeeper.operations, 50_000),
    "ZooKeeper multis": Attack(zookeeper.many_multis, 3_000),
    "ZooKeeper children": Attack(zookeeper.children, 500_000),
    "ZooKeeper empty children": Attack(zookeeper.empty_children, 1_000_000),
    "ZooKeeper false counts": Attack(zookeeper.false_counts, 20_000),
    "ZooKeeper watches": Attack(zookeeper.watches, 300_000),
    "ZooKeeper events": Attack(zookeeper.events, 20_000),
    "ZooKeeper sessions": Attack(zookeeper.sessions, 5_000),
    "ZooKeeper attached": Attack(zookeeper.attached, 5_000),
    "ZooKeeper elections": Attack(zookeeper.elections, 10_000),
    "ZooKeeper partitions": Attack(zookeeper.partitions, 50_000),
    "ZooKeeper states": Attack(zookeeper.states, 20_000),
    "ZooKeeper consumers": Attack(zookeeper.consumers, 10_000),
    "ZooKeeper groups": Attack(zookeeper.groups, 800),
}


def write_attack(name: str, path: Path, factor: int = 1) -> None:
    """Write the capture of an attack, `factor` times its size."""
    attack = ATTACKS[name]
    attack.write(path, attack.make(attack.size * factor))
