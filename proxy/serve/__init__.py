"""A capture as a broker: its answers for the requests of real clients, of any language.

    capture -> Model (nodes, topics, logs, offsets, versions) + Library (captured answers)
    request -> Broker: from the model and from state (logs, groups, transactions), else the captured
               answer to the most similar request, else a declared one -> answer

Sans-I/O, all but `server`; `groups` waits on futures.
"""

from __future__ import annotations

__all__: list[str] = []
