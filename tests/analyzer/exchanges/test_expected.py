"""Errors that are expected by the exchange alone."""

import pytest

from kafkascope.analyzer.exchanges.expected import CLASSES, CODES, class_of, is_expected
from kafkascope.dissectors.reference.codes import ERRORS, error_name
from kafkascope.dissectors.registry import APIS, api_named
from tests.kit.samples import ROOT

ALWAYS = (
    "ApiVersions 35, ConsumerGroupDescribe 69, JoinGroup 79, Heartbeat 27, SyncGroup 27,"
    " OffsetCommit 113, FindCoordinator 15, InitProducerId 14, Metadata 5, ListOffsets 78,"
    " Fetch 70, ShareFetch 122, AddPartitionsToTxn 51, PushTelemetry 117"
)
NEVER = (
    "Fetch 35, DeleteGroups 69, DescribeGroups 27, ConsumerGroupHeartbeat 113, Produce 5,"
    " Fetch 78, Metadata 3, CreateTopics 36, Heartbeat 25"
)
OPEN = "Produce 6, Fetch 74, BrokerRegistration 41"
"""Findings decide."""


@pytest.mark.parametrize(
    ("case", "alone", "with_findings"),
    [
        *((case, True, True) for case in ALWAYS.split(", ")),
        *((case, False, False) for case in NEVER.split(", ")),
        *((case, False, True) for case in OPEN.split(", ")),
    ],
)
def test_what_the_exchange_alone_decides(case: str, alone: bool, with_findings: bool) -> None:
    api, code = case.split()
    key, codes = api_named(api).key, [int(code)]
    assert is_expected(key, codes) is alone
    assert is_expected(key, codes, findings=True) is with_findings


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
