"""Kafka inside mitmproxy, mitmweb and mitmdump: an add-on for versions 11 and 12.

TCP flows show messages decoded, pairs as metadata, and the filter language as a command; addresses
of brokers lead clients back. mitmproxy is imported by `addon` alone, and runs it: nothing here
listens or connects itself.
"""
