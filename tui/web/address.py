"""The address of the page. Loads nothing of the extra."""

from __future__ import annotations

import ipaddress
from typing import Final

from kafkascope.proxy.engine.directory import Address, whole_address

HERE: Final = "127.0.0.1"


class NotHere(ValueError):
    """The address may not be served on, with a sentence why."""


def address_of(text: str) -> Address:
    """Parse `PORT` or `HOST:PORT`, of loopback alone; `NotHere`."""
    found = whole_address(f"{HERE}:{text}" if text.isdigit() else text)
    if found is None:
        raise NotHere(f'"{text}": write PORT or HOST:PORT')
    if found.host == "localhost":
        return found._replace(host=HERE)
    try:
        near = ipaddress.ip_address(found.host).is_loopback
    except ValueError:
        near = False
    if not near:
        raise NotHere(
            f'"{text}": without a login the UI serves this machine only; from another one: '
            f"ssh -L {found.port or 8000}:{HERE}:{found.port or 8000} and --web-port "
            f"{found.port or 8000}"
        )
    return found
