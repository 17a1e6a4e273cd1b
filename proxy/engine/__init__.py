"""Runs the proxy on mitmproxy: listeners, connections, TLS, and what all connections share.

The only home of mitmproxy and of an event loop.
"""
