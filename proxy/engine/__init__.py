"""Runs the proxy on mitmproxy: listeners, connections, TLS.

The only home of mitmproxy and of an event loop.
"""
