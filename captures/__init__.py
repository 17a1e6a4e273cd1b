"""Capture files and live packets to TCP streams. Knows nothing of Kafka; the only home of scapy."""
