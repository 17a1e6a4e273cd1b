"""The access check: only programs on this machine that know the token are let in. No sockets here.

The UI writes files, so a page of another site must not reach it through the user's browser: neither
under a name that its owner turned into a loopback address (DNS rebinding), nor by a websocket,
which browsers let any page open.
"""

from __future__ import annotations

import hmac

from kafkascope.proxy.hosts import host_named, is_loopback


def refusal(
    token: str, given: str, host: str | None, origin: str | None, *, websocket: bool
) -> str | None:
    """Return why a request is refused, None if it is not. `given` is the token in its path."""
    # The port may be another one than ours: ssh -L.
    named = None if host is None else host_named(host)
    if named is None or not is_loopback(named):
        return "this is not the address that kafkascope printed"
    # Pages name their origin in what they load, and always when they open a websocket.
    if origin != f"http://{host}" and (websocket or origin is not None):
        return "pages of other sites are not allowed to use kafkascope"
    if not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        return "the address that kafkascope printed ends with a token: open that one"
    return None
