"""Tells which configs hold a secret, by their names and by the form of their values.

Kafka tells clients that a config is sensitive only in its answers; requests and the configs of
plugins have nothing but a name. Of Kafka's own configs the list is closed; of others a name is
taken for a secret's rather too often than too seldom.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from unicodedata import normalize

from kafkascope.dissectors.reference.config_names import CONFIG_NAMES

_ENDS: Final = re.compile(
    r"(password|passphrase|secret|credentials?|token|[._-]key|jaas\.config|user\.info"
    r"|certificate\.chain|truststore\.certificates)$"
)
"""Ends of the names of Kafka's configs of type PASSWORD."""

_ANYWHERE: Final = re.compile(
    r"passw|passphrase|passcode|pass[._-]?key|pwd|secret|token|credential|api[._-]?key|access[._-]?key"
    r"|private[._-]?key|secret[._-]?key|auth[._-]?key|master[._-]?key|account[._-]?key"
    r"|encryption[._-]?key|shared[._-]?key|signature|bearer|authorization|cookie|hmac"
    r"|jaas|user[._-]?info|connection[._-]?string"
)
"""Parts of the names that others give to their secrets."""

_WORDS: Final = frozenset(
    {"pass", "pw", "pin", "psk", "pat", "sas", "auth", "salt", "pem", "jwt", "otp", "totp", "dsn"}
)
"""Words that are too short to be looked for inside of others."""

_HARMLESS: Final = re.compile(
    r"[._-](location|path|file|files|dir|type|class|classes|provider|algorithm|algorithms|serializer"
    r"|deserializer|converter|iterations|length|size|count|enable|enabled|disabled|ms|millis|sec"
    r"|secs|seconds|minutes|hours|days|expiry|interval|timeout|endpoint|url|uri|policy|version"
    r"|format|mechanism|mechanisms|issuer|audience|retries|max|min)$"
)
"""Ends of names that are about a secret without holding it. Contents of URLs are checked."""

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN: Final = re.compile(r"[^a-z0-9]+")
_UNSEEN: Final = re.compile(r"[^\x21-\x7e\u00a1-\U0010ffff]+")
"""Blanks and characters that do not print, which readers of configs strip or ignore."""

MOST_LOOKED_AT: Final = 64 * 1024
MOST_OF_NAME: Final = 512
"""Characters of a value and of a name; longer ones are taken for secrets."""

_IN_VALUE: Final = re.compile(
    r"://[^@\r\n]{0,1024}@"  # user and password before the host of a URL
    r"|:(?:thin|oci8?):[^/@\s]{0,256}/[^\r\n]{1,1024}@"  # the same of Oracle
    r"|\beyJ[\w-]{8,}\.[\w-]{2,}\.[\w-]*"  # a JSON Web Token
    r"|(?:passw(?:or)?d|passphrase|passwd|pwd|pass|secret|token|api[._-]?key|access[._-]?key"
    r"|private[._-]?key|account[._-]?key|signature|sig|credentials?)"
    r"[\"']?\s{0,8}(?:=|:)(?!//)\s{0,8}\S"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY|\b(?:bearer|basic) [\w.~+/=-]{8}",
    re.IGNORECASE,
)
"""Matches URLs and lists of settings with a password, tokens, private keys, and headers."""


@lru_cache(4096)
def _sensitive(name: str) -> bool:
    if len(name) > MOST_OF_NAME:
        return True
    shown = _UNSEEN.sub(".", normalize("NFKC", name)).strip(".")
    lower = shown.lower()
    if _ENDS.search(lower):
        return True
    if _own(lower):
        return False
    if _HARMLESS.search(lower):
        return False
    parts = _BETWEEN.split(_CAMEL.sub(".", shown).lower())
    return (
        _ANYWHERE.search(lower) is not None
        or not _WORDS.isdisjoint(parts)
        or (parts[-1:] == ["key"] and len(parts) > 1)
    )


def _own(name: str) -> bool:
    """Whether it is one of Kafka's own, also behind a prefix (`listener.name.x.`, `producer.`)."""
    at = 0
    while at >= 0:
        if name[at:] in CONFIG_NAMES:
            return True
        at = name.find(".", at) + 1 or -1
    return False


def is_sensitive(name: object) -> bool:
    """Whether a config of that name holds a secret."""
    return isinstance(name, str) and _sensitive(name)


def holds_secret(value: object) -> bool:
    """Whether a value shows by itself that there is a secret in it, whatever its config is."""
    if not isinstance(value, str):
        return False
    return len(value) > MOST_LOOKED_AT or _IN_VALUE.search(value) is not None
