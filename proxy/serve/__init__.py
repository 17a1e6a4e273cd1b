"""Serves a capture as a broker to real clients, of any language.

    capture -> CapturedCluster (nodes, topics, logs, offsets, versions) + Library (responses)
    request -> Broker: from the cluster and from state (logs, groups, transactions), else the
               captured response to the most similar request, else an error -> response

Sans-I/O, all but `server`; `groups` waits on futures.
"""
