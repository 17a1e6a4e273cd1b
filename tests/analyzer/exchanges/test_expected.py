"""Errors that are expected by the exchange alone."""

import pytest

from kafkascope.analyzer.exchanges.expected import CLASSES, CODES, class_of, is_expected
from kafkascope.dissectors.reference.codes import ERRORS, error_name
from kafkascope.dissectors.registry import APIS, api_named
from tests.kit.samples import ROOT


@pytest.mark.parametrize(
    ("api", "code", "alone", "with_findings"),
    [
        ("ApiVersions", 35, True, True),
        ("Fetch", 35, False, False),
        ("ConsumerGroupDescribe", 69, True, True),
        ("DeleteGroups", 69, False, False),
        ("JoinGroup", 79, True, True),
        ("Heartbeat", 27, True, True),
        ("SyncGroup", 27, True, True),
        ("DescribeGroups", 27, False, False),
        ("OffsetCommit", 113, True, True),
        ("ConsumerGroupHeartbeat", 113, False, False),
        ("FindCoordinator", 15, True, True),
        ("InitProducerId", 14, True, True),
        ("Metadata", 5, True, True),
        ("Produce", 5, False, False),
        ("ListOffsets", 78, True, True),
        ("Fetch", 78, False, False),
        ("Produce", 6, False, True),
        ("Fetch", 74, False, True),
        ("BrokerRegistration", 41, False, True),
        ("Fetch", 70, True, True),
        ("ShareFetch", 122, True, True),
        ("AddPartitionsToTxn", 51, True, True),
        ("PushTelemetry", 117, True, True),
        ("Metadata", 3, False, False),
        ("CreateTopics", 36, False, False),
        ("Heartbeat", 25, False, False),
    ],
)
def test_what_the_exchange_alone_decides(
    api: str, code: int, *, alone: bool, with_findings: bool
) -> None:
    key = api_named(api).key
    assert is_expected(key, [code]) is alone
    assert is_expected(key, [code], findings=True) is with_findings


def test_one_unexpected_error_makes_the_response_unexpected() -> None:
    assert not is_expected(8, [27, 25])


def test_each_class_has_known_errors_apis_and_a_source() -> None:
    assert len({each.name for each in CLASSES}) == len(CLASSES)
    for each in CLASSES:
        assert each.codes <= ERRORS.keys()
        assert (each.apis or frozenset()) <= APIS.keys()
        assert each.condition
        assert each.source
    assert sum(len(each.codes) for each in CLASSES) == len(CODES), "a code is in one class"
    assert class_of(18, 35) is CLASSES[0]


def test_the_document_lists_the_classes() -> None:
    text = (ROOT / "docs" / "filter.md").read_text()
    for each in CLASSES:
        codes = ", ".join(error_name(code) for code in sorted(each.codes))
        apis = ", ".join(APIS[key].name for key in sorted(each.apis)) if each.apis else "all"
        line = f"| `{each.name}` | {codes} | {apis} | {each.condition} | {each.source} |"
        assert line in text
