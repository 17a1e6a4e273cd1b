"""Which keys and names are kept of too many, and what is kept of a long one."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, TypeVar

# Characters of a name in a key, or in a set of names: as many as Kafka allows for topics. Of a
# longer one the first are kept, its length and a hash: on the wire there is room for 32 KB, and ten
# thousand are a third of a gigabyte.
MOST_TEXT: Final = 249
# Characters that are kept of a longer one.
BEGINNING: Final = 180

T = TypeVar("T")


def rank(key: Any) -> int:
    """Return a number that depends on nothing but the key."""
    # Python's own hash of a text is another one in each process.
    text = repr(key).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest())


def bounded(value: T) -> T:
    """Return a name as it is kept: a long text in part, anything else as it is."""
    if isinstance(value, tuple):
        # Each new key of a table comes here, and hardly any has a long text.
        for each in value:
            if isinstance(each, tuple) or (isinstance(each, str) and len(each) > MOST_TEXT):
                short = tuple(map(bounded, value))
                return value if short == value else short  # type: ignore[return-value]
    elif isinstance(value, str) and len(value) > MOST_TEXT:
        return _shortened(value)  # type: ignore[return-value]
    return value


@lru_cache(maxsize=256)
def _shortened(text: str) -> str:
    """Return the beginning of a text, cached: some thirty tables shorten that of one exchange."""
    return f"{text[:BEGINNING]}... ({len(text):,} characters, {rank(text):016x})"


_BOUNDED: Final = re.compile(r"\.\.\. \([0-9,]+ characters, [0-9a-f]{16}\)")


def has_bounded(text: str) -> bool:
    """Return whether a name in a text is there in part (`bounded`): no filter finds it."""
    return _BOUNDED.search(text) is not None
