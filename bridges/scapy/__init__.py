"""Kafka as a layer of scapy: packets with messages as fields, read and built.

Fields come from the declarations, values from the readers of all other outputs. The second home of
scapy: a layer for scapy is made of its classes. Knows nothing of files and sockets, which are
scapy's.
"""
