"""Findings about keys and values by their schemas: what is told, and what stays silent."""

import json
from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.seen_schemas import seen_in
from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.findings.limits import LIMITS, FindingLimits
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from tests.analyzer.findings.judging import found, states
from tests.analyzer.findings.sides_schemas import (
    FIELD,
    GOOD,
    LONG,
    OF_SCHEMAS,
    ORDER,
    payloads,
    produced,
    schema,
)
from tests.kit.batches import batch
from tests.kit.counting import count_capture, counted, pairs_in
from tests.kit.samples import pairs_of
from tests.kit.schemas import SAMPLES, capture, folder
from tests.kit.wire import Wire


def judged(
    *wires: Wire, by: Payloads | None = None, limits: FindingLimits = LIMITS
) -> dict[str, Finding]:
    return found(wires, *OF_SCHEMAS, payloads=by or payloads(), limits=limits)


def of_capture(path: Path, by: Payloads) -> list[Finding]:
    findings = Findings(only=OF_SCHEMAS, payloads=by)
    return findings.reported(count_capture(path, findings))


def fetched(value: bytes) -> Wire:
    blob = batch([(None, GOOD), (None, value)])
    return Wire().fetch(1, 0, blob, topic="t", version=4, client="reader", partition_index=3)


def test_good_values_nulls_and_texts_without_schemas_are_silent() -> None:
    assert not judged(produced(*[GOOD] * 5, None, None))
    assert not judged(produced(b"a", b"\0", b"\0\0\0\0\0\0\0\5", b"", b"{}"))


def test_a_value_that_does_not_fit() -> None:
    finding = judged(produced(GOOD, LONG, client="orders-svc"))["schema-misfit"]
    assert finding.severity == "error"
    assert states(finding.text, "1 value", "topic t", "orders-svc", "id 1 of subject t-value")
    assert "partition 3, offset 41" in finding.text
    assert finding.entities == (("client", "orders-svc"), ("topic", "t"))
    assert finding.number is not None


def test_who_wrote_a_fetched_value_is_not_known() -> None:
    finding = judged(fetched(LONG))["schema-misfit"]
    assert states(finding.text, "producer is not in the capture")
    assert finding.entities == (("topic", "t"),)


def test_what_was_seen_written_is_not_told_again_when_it_is_read() -> None:
    finding = judged(produced(GOOD, LONG), fetched(LONG))["schema-misfit"]
    assert finding.count == 1
    assert "app" in finding.text


def test_an_unknown_id_is_told_only_where_others_are_known() -> None:
    unknown = b"\0\0\0\0\7\x02"
    finding = judged(produced(GOOD, unknown))["schema-unknown"]
    assert "id 7" in finding.text
    assert finding.severity == "warning"
    assert not judged(produced(unknown, unknown))
    of_capture_ = payloads(schema(1, source="capture"))
    assert judged(produced(GOOD, unknown), by=of_capture_)["schema-unknown"].severity == "note"


def test_a_record_without_a_schema_among_others() -> None:
    wires = [produced(*[GOOD] * 9), produced(b"poison", client="script", number=1)]
    finding = judged(*wires)["schema-mixed"]
    assert states(finding.text, "1 value", "topic t", "script", "no schema", 10)
    assert finding.entities[0] == ("client", "script")


def test_a_topic_of_texts_gets_a_value_with_its_schema() -> None:
    wires = [produced(*[b"text"] * 9), produced(GOOD, client="new", number=1)]
    assert "by new has a schema" in judged(*wires)["schema-mixed"].text


def test_two_formats_in_a_topic() -> None:
    by = payloads(schema(1), schema(2, {"type": "object"}, form="json"))
    wires = [produced(*[GOOD] * 3), produced(b"\0\0\0\0\2{}", client="js", number=1)]
    assert states(judged(*wires, by=by)["schema-mixed"].text, "js", "json", "avro")


def test_values_with_the_schema_of_keys() -> None:
    by = payloads(schema(1, subject="t-key"))
    assert states(judged(produced(GOOD), by=by)["schema-of-key"].text, "app", "schema of keys")
    assert not judged(produced((GOOD, None)), by=by)  # type: ignore[arg-type]
    assert not judged(produced(GOOD), by=payloads(schema(1, subject="other-key")))


@pytest.mark.parametrize("breaks", [True, False])
def test_an_incompatible_change_of_a_subject(breaks: bool) -> None:
    added = {"name": "m", "type": "long"} | ({} if breaks else {"default": 0})
    newer = schema(2, ORDER | {"fields": [FIELD, added]}, version=2)
    wires = [produced(GOOD), produced(b"\0\0\0\0\2\x02\x04", client="new", number=1)]
    told_ = judged(*wires, by=payloads(schema(1), newer))
    assert set(told_) == ({"schema-breaks"} if breaks else set())
    if breaks:
        assert "from id 1 to 2" in told_["schema-breaks"].text
        assert told_["schema-breaks"].entities[0] == ("client", "new")


@pytest.mark.parametrize("ids", [(1, 2), (2, 1)])
def test_without_versions_ids_tell_which_schema_is_newer(ids: tuple[int, int]) -> None:
    added = ORDER | {"fields": [FIELD, {"name": "m", "type": "long"}]}
    schemas = [schema(ids[0], version=0), schema(ids[1], added, version=0)]
    values = [bytes((0, 0, 0, 0, ids[0], 2)), bytes((0, 0, 0, 0, ids[1], 2, 4))]
    told_ = judged(produced(*values), by=payloads(*schemas))
    # Without a field that it had, a reader of the newer one reads on.
    assert ("schema-breaks" in told_) == (ids == (1, 2))


def test_mistakes_of_real_clients_with_the_schemas_of_the_capture() -> None:
    path = capture("mistakes")
    findings = of_capture(path, Payloads(KnownSchemas(seen_in([path]).schemas())))
    about = [(each.name, dict(each.entities)) for each in findings]
    assert sorted((name, named["topic"], named["client"]) for name, named in about) == [
        ("schema-breaks", "schema-breaks", "shop-2"),
        ("schema-mixed", "schema-mixed", "javascript"),
        ("schema-mixed", "schema-mixed", "script"),
        ("schema-of-key", "schema-of-key", "wrong-subject"),
        ("schema-unknown", "schema-unknown", "of-staging"),
    ]


def test_without_payloads_nothing_is_looked_at() -> None:
    assert not found([produced(GOOD, LONG)], *OF_SCHEMAS)


def test_parts_merge_and_a_state_tells_the_same_elsewhere() -> None:
    by = payloads()
    wires = [produced(*[GOOD] * 9), produced(b"poison", LONG, client="script", number=1)]
    pairs = pairs_in(event for wire in wires for event in wire.events)
    whole, one, other = (
        counted(Findings(payloads=by), part) for part in (pairs, pairs[::2], pairs[1::2])
    )
    other.merge(one)
    assert other.dump() == whole.dump()
    again = Findings().load(json.loads(json.dumps(whole.dump())))
    assert again.reported() == whole.reported()
    assert {each.name for each in again.reported()} >= {"schema-mixed", "schema-misfit"}


def test_much_is_sampled_and_that_is_said() -> None:
    few = LIMITS._replace(framed_records=10, plain_records=10)
    wires = [produced(*[GOOD] * 9, LONG)]
    wires += [produced(*[GOOD] * 10, number=number) for number in range(1, 30)]
    assert "only some records were inspected" in judged(*wires, limits=few)["schema-misfit"].text
    assert "some records" not in judged(wires[0], limits=few)["schema-misfit"].text


@pytest.mark.parametrize("name", sorted(path.name for path in (SAMPLES / "schemas").iterdir()))
def test_real_captures(name: str) -> None:
    findings = of_capture(capture(name), Payloads(KnownSchemas(folder(name))))
    if name != "bad-schemas":
        assert not findings
        return
    assert {each.name for each in findings} == {"schema-misfit", "schema-unknown", "schema-mixed"}
    counts = {
        kind: sum(each.count for each in findings if each.name == kind) for kind in OF_SCHEMAS
    }
    assert (counts["schema-misfit"], counts["schema-unknown"]) == (8, 1)
    assert counts["schema-mixed"] == 6
    pairs = pairs_of(capture(name))
    for each in findings:
        wanted = compile_filter(each.filter)
        assert [row.number for row, exchange in pairs if wanted(row, exchange)] == [each.number]


def test_schemas_of_nobody_are_no_finding() -> None:
    assert not of_capture(capture("bad-schemas"), Payloads(KnownSchemas()))
