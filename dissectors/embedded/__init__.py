"""Formats inside bytes fields: subscriptions and assignments, SASL tokens, nested requests,
metrics.

`embedded_in` walks a decoded body and yields what is inside its bytes fields. Secrets are always
masked here.
"""

from __future__ import annotations

from kafkascope.dissectors.embedded.model import Around, Embedded
from kafkascope.dissectors.embedded.sasl import decode as sasl_token
from kafkascope.dissectors.embedded.table import decode, embedded_in

__all__ = ["Around", "Embedded", "decode", "embedded_in", "sasl_token"]
