"""Facts of large records fields: totals in place of the bytes, which the frame has."""

from __future__ import annotations

from kafkascope.analyzer.bodies.contents import WALKED_BYTES, contents_of, counted
from kafkascope.analyzer.bodies.facts import BodyFacts
from tests.analyzer.batches import batch


def test_an_exchange_holds_no_second_copy_of_large_records() -> None:
    blob = batch([(None, bytes(WALKED_BYTES))])
    damaged = blob[:-1] + b"x"
    for blobs in ([blob], [damaged], [blob, b""]):
        facts = counted(BodyFacts(blobs=blobs))
        assert not isinstance(facts.blobs, list)
        assert contents_of(facts.blobs) == contents_of(blobs)
    small = BodyFacts(blobs=[batch([(None, b"v")])])
    assert counted(small) is small
