"""Kafka as interfaces of Wireshark: an extcap program, and the command that installs it.

`protocol` parses Wireshark's calls and formats the responses, without I/O; `running` captures;
`folders` knows where Wireshark looks for such programs.
"""
