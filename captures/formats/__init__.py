"""Capture formats, read and written without I/O: pcap and pcapng, also after damage."""
