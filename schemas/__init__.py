"""Keys and values of records, decoded by their schemas: Avro, Protobuf, JSON Schema.

Knows the bytes and headers of a record, and schemas; no messages, connections or exchanges.
"""
