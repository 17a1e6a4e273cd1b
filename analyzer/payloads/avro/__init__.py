"""Avro: schemas, and payloads by their writer's schema.

The decoder is our own. fastavro and Apache's library recurse without a bound, read union and enum
indexes that are negative, and allocate by counts of items without bytes: fit for data of friends.
They are the witnesses of our tests.
"""
