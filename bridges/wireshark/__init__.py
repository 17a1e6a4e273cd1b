"""Kafka as interfaces of Wireshark: an extcap program, and the command that installs it.

`protocol` reads what Wireshark asks and says what it is told, without I/O; `running` captures;
`folders` knows where Wireshark looks for such programs.
"""
