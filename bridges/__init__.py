"""Kafka inside tools of others: scapy, mitmproxy, Wireshark, Spark, assistants.

One module or room for each tool; a tool is imported by its own module alone.
"""
