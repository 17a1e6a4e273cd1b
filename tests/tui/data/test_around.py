"""What stands around an exchange is found while rows come."""

from dataclasses import replace

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.findings import Finding
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.model import Exchange
from kafkascope.tui.data.around import around
from kafkascope.tui.data.store import Store
from kafkascope.tui.settings.notes import Notes
from tests.kit.samples import SAMPLES

SAMPLE = SAMPLES / "libraries.pcap"


class Growing(Store):
    """Rows come at the moment at which somebody asks how many there are."""

    coming: tuple[Exchange, ...] = ()

    def __len__(self) -> int:
        some, self.coming = self.coming, ()
        for exchange in some:
            self.add(exchange)
        return super().__len__()


def test_columns_become_wider_while_neighbours_are_looked_for() -> None:
    with open_capture([SAMPLE]) as capture:
        seen = list(capture.exchanges())
        store = Growing(capture.source.read, capture.context)
        store.add(seen[0])
        # More connections than a byte tells apart.
        rows = [seen[place % len(seen)] for place in range(200)]
        others = [
            replace(each, number=2 + place, connection=replace(each.connection, number=900 + place))
            for place, each in enumerate(rows)
        ]
        store.coming = (*others, replace(seen[0], number=500))
        before = store.session.columns["connection"]
        lines = around(store, Notes(), seen[0].number, ())
        assert store.session.columns["connection"] is not before
        assert any(line.split()[:1] == ["500"] for line in lines)


def test_of_many_findings_of_one_rule_it_says_that_there_may_be_more() -> None:
    said = "there may be more findings of lag here: the findings have all"
    with open_capture([SAMPLE]) as capture:
        store = Store(capture.source.read, capture.context)
        for each in capture.exchanges():
            store.add(each)
        found = [
            Finding("lag", "note", f"{n}", 1, None, None, "", "")
            for n in range(LIMITS.findings_of_rule)
        ]
        assert said in around(store, Notes(), 1, found)
        assert said not in around(store, Notes(), 1, found[1:])
