"""Sends a capture's requests to a live cluster and compares its responses with the captured ones.

    capture -> Plan (policy: what may be sent) -> Remap (ids of the capture -> those of the peer)
            -> Split (which broker has the role) -> Peer (sockets) -> Compare

Sans-I/O, all but `peer`, `cluster` and `run`.
"""
