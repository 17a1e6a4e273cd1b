"""The report: the numbers of the commands, nothing that runs or loads, hostile names as text."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.commands.report import report
from kafkascope.analyzer.conversation.pending import SASL_TOKEN
from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings.causes import unfolded
from kafkascope.analyzer.findings.filters import api_is
from kafkascope.analyzer.merging.tables import OTHERS
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.report.collect import ReportFacts, collect
from kafkascope.analyzer.report.disguise import Disguise
from kafkascope.analyzer.report.markdown import _cell, _code, _text
from kafkascope.analyzer.report.sections import sections
from kafkascope.analyzer.statistics.traffic import Latency
from kafkascope.captures.formats.write import PcapngWriter
from tests.analyzer.requestlog.samples import sample_files
from tests.hostile import hostile as hostile_names
from tests.interop.needs import need
from tests.kit.captures import capture_file
from tests.kit.counting import counted as let_count
from tests.kit.run import run
from tests.kit.samples import CAPTURES, CAUSES, SAMPLES, TLS, pairs_of
from tests.kit.wire import request, response
from tests.matrix import mostly_slow

SHOP = CAPTURES / "shop.pcap.zst"
DOWN = CAUSES / "broker-down-java.pcap.gz"
HEALTHY = CAUSES / "healthy-kafkajs.pcap.gz"
NOTHING = Path("nothing.pcapng")
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")


class Elements(HTMLParser):
    """Names, attributes and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def made(tmp_path: Path, capture: Path, *options: str, name: str = "r.html") -> str:
    target = tmp_path / name
    full = ["--full"] if name.endswith(".md") else []
    words = ["report", str(capture), "-o", str(target), *full, *options]
    result = run(*words)
    assert result.exit_code == 0, result.output
    return target.read_text()


def read(page: str) -> Elements:
    found = Elements()
    found.feed(page)
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made(tmp_path_factory.mktemp("report"), SHOP)


def test_it_is_whole_without_a_network(page: str) -> None:
    found = read(page)
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(found.names)
    loading = {"src", "srcset", "action", "data", "xlink:href"}
    assert not [name for name, _ in found.attributes if name in loading or name.startswith("on")]
    links = [value or "" for name, value in found.attributes if name == "href"]
    assert links
    assert all(link.startswith("#") for link in links)
    assert "url(" not in page
    assert "@import" not in page
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_the_three_questions_are_answered(page: str) -> None:
    text = " ".join(read(page).texts)
    assert "Incompatible: legacy-export" in text
    assert "172.17.0.4:29092" in text
    assert "no heartbeat for" in text


def test_numbers_are_those_of_the_commands(page: str) -> None:
    latency = let_count(Latency(), pairs_of(SHOP))
    cells = re.findall(r"<td[^>]*>(\w+)</td><td class=r>([\d,]+)</td>", page)
    counted = {line["api"]: str(line["requests"]) for line in latency.rows(by=("api",))}
    assert counted["Fetch"] == dict(cells)["Fetch"]
    assert set(counted.items()) <= set(cells)


def test_rows_have_filters_that_are_some(page: str) -> None:
    assert "<code>conn == 0</code>" in page
    for api in ("Fetch", "Api 123", SASL_TOKEN, OTHERS, "", None):
        if where := api_is(api):
            compile_filter(where)
    assert (api_is("Api 123"), api_is(SASL_TOKEN), api_is(OTHERS)) == ("api == 123", "", "")


def test_every_chart_has_a_title_and_parents_close(page: str) -> None:
    assert page.count("<svg") == page.count("</svg>") > 3
    assert page.count('class="chart"><title>') == page.count("<svg")


def test_stages_are_drawn_over_time(page: str, tmp_path: Path) -> None:
    chart = next(each for each in re.findall("<svg.*?</svg>", page, re.S) if "Stages of" in each)
    for kind in ("main", "trip", "serve", "second"):
        assert f'class="{kind}"' in chart
    assert re.search(r"request transfer .*, round trip .*, server .*, response transfer", chart)
    # Without a handshake no round trip is known.
    midstream = CAPTURES / "midstream.pcap.gz"
    assert "Stages of" not in made(tmp_path, midstream)


def paragraphs(page: str, section: str) -> list[str]:
    found = re.search(rf'<section id="{section}">(.*?)</section>', page, re.DOTALL)
    assert found is not None
    return re.findall(r"<p>(.*?)</p>", found[1])


def test_it_begins_with_sentences_and_a_chart(page: str) -> None:
    said = paragraphs(page, "summary")
    assert said[0] == (
        "Within 78 s: 1,778 exchanges, between 21 clients and 3 brokers, on 194 connections."
    )
    assert re.fullmatch(
        r"[\d,]+ errors; \d+ more expected by the protocol, and \d+ requests received no "
        r"response\.",
        said[1],
    )
    assert re.match(r"Findings: \d+ errors, \d+ warnings, \d+ notes and \d+ consequences", said[2])
    checked = run("check", SHOP, "--json", "--fail-on", "never").stdout
    worst = [each for each in map(json.loads, checked.splitlines()) if not each["because"]]
    for sentence, cause in zip(said[3:], worst, strict=False):
        assert unescape(sentence).startswith(
            f"{cause['severity'].capitalize()}: {cause['text'][:80]}"
        )
    assert len(said) == 6
    places = [page.index(part) for part in ('id="summary"', "<svg", "<nav>", 'id="findings"')]
    assert places == sorted(places), "both are seen before anything else"


@pytest.mark.parametrize(
    ("name", "options"),
    mostly_slow(
        [
            (SHOP, ()),
            (SHOP, ("-Y", "api == Heartbeat")),
            (SHOP, ("-Y", "client == nobody")),
            (SHOP, ("--redact", "all")),
            (SAMPLES / "rebalance.pcap", ()),
            (SAMPLES / "sasl.pcap", ()),
            (HEALTHY, ()),
            (NOTHING, ()),
        ],
        lambda case: case[0] in (HEALTHY, NOTHING) or "--redact" in case[1],
    ),
    ids=lambda value: value.name if isinstance(value, Path) else " ".join(value),
)
def test_a_summary_has_three_to_six_sentences(
    name: Path, options: tuple[str, ...], tmp_path: Path
) -> None:
    if name == NOTHING:
        name = tmp_path / NOTHING
        with name.open("wb") as file:
            PcapngWriter(file).interface("lo")
    said = paragraphs(made(tmp_path, name, *options), "summary")
    assert 3 <= len(said) <= 6
    assert all(sentence.endswith(".") for sentence in said)
    assert sum(map(len, said)) < 2_000, "the chart below it is to be seen, too"
    if name == HEALTHY:
        assert said[1].endswith("and every request that expects a response received one.")


@pytest.mark.parametrize("redact", ["values", "all"])
def test_what_followed_is_folded_into_its_cause(redact: str, tmp_path: Path) -> None:
    page = made(tmp_path, DOWN, "--redact", redact)
    fold = re.search(
        r'<article class="warning">.{,400}was down for 26 s((?!</article>).)*'
        r"<details><summary>consequences: 1 request without response</summary>"
        r'<article class="warning">((?!</article>).)*got no response((?!</article>).)*'
        r"</article></details></article>",
        page,
        re.DOTALL,
    )
    assert fold is not None
    assert page.count("got no response: ") == 1
    assert "consequences: 1 request without response." in paragraphs(page, "summary")[-1]
    lines = made(tmp_path, DOWN, "--redact", redact, name="r.md").splitlines()
    (at,) = (
        n for n, line in enumerate(lines) if line == "  Consequences: 1 request without response"
    )
    assert "was down for 26 s" in lines[at - 1]
    assert lines[at + 3].startswith("  - **warning**: 1 JoinGroup request from ")
    for text in (page, *lines):
        assert redact == "values" or "restart-" not in text


def test_no_table_is_wider_or_longer_than_its_place(page: str) -> None:
    tables = re.findall(r'(<summary>[^<]*</summary>)?<div class="wide"><table>(.*?)</table>', page)
    assert len(tables) == page.count("<table>") > 10
    for summary, table in tables:
        rows = table.count("<tr") - 1
        assert summary or rows <= 8
        if summary:
            assert re.search(r": [\d,]+ lines?<", summary)
    assert ".wide{overflow:auto" in page
    assert "details::details-content{content-visibility:visible" in page, "paper opens folds"


@pytest.mark.parametrize("name", [SHOP, HEALTHY, DOWN], ids=lambda path: path.name)
def test_markdown_is_a_ticket_of_thirty_lines(tmp_path: Path, name: Path) -> None:
    target = tmp_path / "ticket.md"
    assert run("report", name, "-o", target).exit_code == 0
    lines = target.read_text().splitlines()
    assert len(lines) <= 30
    assert lines[0] == f"# Kafka traffic: `{name.name}`"
    assert f"kafkascope report {name.name} -o report.md --full" in lines[-1]
    if name == DOWN:
        (at,) = (n for n, line in enumerate(lines) if "was down for 26 s" in line)
        assert lines[at + 3].startswith(f"  `kafkascope ls {name.name} -Y ")


def test_markdown_has_the_same_findings(tmp_path: Path) -> None:
    text = made(tmp_path, SHOP, name="r.md")
    assert text.startswith("# Kafka traffic: `shop.pcap.zst`")
    assert "172.17.0.4:29092" in text
    assert "## Consumer groups" in text


def test_all_names_can_be_hidden(tmp_path: Path) -> None:
    for name in ("r.html", "r.md"):
        text = made(tmp_path, SHOP, "--redact", "all", name=name)
        for word in ("legacy", "billing", "orders", "10.0.2.", "172.17.", "shop.pcap"):
            assert word not in text, word
        assert "client-1" in text.replace("\\-", "-")


def test_names_of_handshakes_are_hidden(tmp_path: Path) -> None:
    for name, word in (("tls13-mutual", "CN=client"), ("failed13-name", "CN=other")):
        options, path = ["--keylog", str(TLS / f"{name}.keys")], TLS / f"{name}.pcap.gz"
        text = made(tmp_path, path, *options, name="r.md").replace("\\", "")
        assert word in text, "it is there to be hidden"
        options += ["--redact", "all"]
        text = made(tmp_path, path, *options, name="r.md").replace("\\", "")
        for each in (word, "CN=tests", "192.0.2.1"):
            assert each not in text, each


def counted(path: Path, *, hides: bool) -> ReportFacts:
    given: list[ReadOptions] = []

    @click.command()
    @reading_options()
    def probe(options: ReadOptions) -> None:
        given.append(options)

    assert CliRunner().invoke(probe, [str(path)]).exit_code == 0
    with Reading(given[0]) as reading:
        return collect(reading, Disguise(reading.capture.context.names) if hides else None)


def edge_sums(facts: ReportFacts) -> dict[str, tuple[int, int]]:
    """Records and bytes that the map of a report says are written and read."""
    rows = facts.findings.base.map.rows(facts.names, facts.by)
    return {
        way: (
            sum(row["records"] for row in rows if row["way"] == way),
            sum(row["bytes"] for row in rows if row["way"] == way),
        )
        for way in ("writes", "reads")
    }


@pytest.mark.parametrize("name", ["demo.pcap.zst", "rebalance.pcap", "transactions.pcap"])
def test_a_report_with_other_names_tells_the_same(name: str) -> None:
    plain, other = (counted(SAMPLES / name, hides=hides) for hides in (False, True))
    found = [
        sorted((f.name, f.severity, f.count) for f in unfolded(x.causes)) for x in (plain, other)
    ]
    assert found[0] == found[1]
    # Pseudonyms are no applications: the map is by client id, with the same sums.
    assert edge_sums(plain) == edge_sums(other)
    plain = replace(plain, by=other.by)
    for one, two in zip(sections(plain, "4.0"), sections(other, "4.0"), strict=True):
        for mine, its in zip(one.tables, two.tables, strict=True):
            assert mine.titles == its.titles
            for column, right in enumerate(mine.right):
                if right and not mine.left_out:
                    values = [sorted(row[column] for row in each.rows) for each in (mine, its)]
                    assert values[0] == values[1], (mine.caption, mine.titles[column])


def test_hidden_names_are_not_in_the_filter_or_in_what_is_said_of_files(tmp_path: Path) -> None:
    cut = tmp_path / "acme-payments.pcap"
    whole = (SAMPLES / "rebalance.pcap").read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    target = tmp_path / "r.html"
    words = ["-Y", 'group == "billing" or client ~ "billing"', "--redact", "all"]
    run("report", cut, "-o", target, *words)
    text = target.read_text()
    assert "a file is cut short" in text
    assert "acme" not in text
    assert "billing" not in text


def test_a_filter_is_said_and_kept(tmp_path: Path) -> None:
    text = made(tmp_path, SHOP, "-Y", "api == Heartbeat")
    assert "api == Heartbeat" in text
    assert "<td>Produce</td>" not in text


def hostile(tmp_path: Path) -> Path:
    """A capture in which every name is a piece of HTML, of Markdown, and of a terminal's codes."""
    name = EVIL + "`|\x1b[31m\n"
    asked = request("Metadata", 1, 7, EVIL, topics=[{"name": name}])
    broker = {"node_id": 1, "host": name, "port": 9092}
    answer = response("Metadata", 1, 7, brokers=[broker], topics=[{"error_code": 3, "name": name}])
    return capture_file(tmp_path / "evil.pcapng", [("client", asked), ("broker", answer)])


def test_names_from_traffic_stay_text(tmp_path: Path) -> None:
    capture = hostile(tmp_path)
    page = made(tmp_path, capture)
    found = read(page)
    assert "alert(1)" in " ".join(found.texts)
    assert not {"script", "img"} & set(found.names)
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert "\x1b" not in page
    text = made(tmp_path, capture, name="r.md")
    assert "\x1b" not in text
    outside = re.sub(r"(`+)(?:(?!\1).)*\1", "", text)
    assert not re.search(r"(?<!\\)<(script|img)", outside)


def test_a_target_that_is_the_input_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "x.md"
    target.write_bytes(SHOP.read_bytes())
    before = target.read_bytes()
    result = CliRunner().invoke(report, [str(target), "-o", str(target)])
    assert result.exit_code == 2
    assert target.read_bytes() == before


@pytest.mark.parametrize("words", [[], ["-o", "x.pdf"], ["-o", "x.html", "--format", "csv"]])
def test_wishes_that_no_report_can_fill_are_told(words: list[str]) -> None:
    assert run("report", SHOP, *words).exit_code == 2


def test_it_is_shown_by_a_browser(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), "")
    if not browser:
        need(BROWSERS[0])
    made(tmp_path, SHOP)
    shown = {}
    for name, wish in (
        ("light.png", "--screenshot"),
        ("dark.png", "--blink-settings=preferredColorScheme=0 --screenshot"),
        ("paper.pdf", "--no-pdf-header-footer --print-to-pdf"),
    ):
        target = tmp_path / name
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,1600"]
        flags += [f"--user-data-dir={tmp_path / 'profile'}", *f"{wish}={target}".split()]
        dump = [browser, *flags, (tmp_path / "r.html").as_uri()]
        done = subprocess.run(dump, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        shown[name] = target.read_bytes()
        assert len(shown[name]) > 20_000
    assert shown["light.png"] != shown["dark.png"]
    assert shown["paper.pdf"].startswith(b"%PDF")


LINKS = [
    *("https://evil.example/x", "www.evil.example", "evil.zip", "mail@evil.example", "@everyone"),
    *("#12", "group/project#12", "!7", "GH-7", "deadbeefcafe", "[a](https://evil.example)"),
    *("![a](//evil.example/x.png)", "<https://evil.example>", "<script>alert(1)</script>", "<!--"),
    *("&lt;", ":tada:", "$x$", "a`b``c", "`code`x", "a|b\\|c", "\\"),
    *("~~x~~", "**x**", "[^1]", "^x"),
]


def outside_code(text: str) -> str:
    """What a renderer shows as text; anything that is more than text or code fails."""
    shown = []
    for token in MarkdownIt("commonmark").enable("table").enable("strikethrough").parse(text):
        assert token.type != "html_block", token.content
        for each in token.children or []:
            allowed = {"text", "code_inline", "softbreak", "text_special"}
            assert each.type in allowed or each.markup == "**", (each.type, each.content)
            shown.append(each.content if each.type.startswith("text") else "\0")
    return "".join(shown)


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("around", ["{}", "client {} (user {}), {}: x", "({}), `ours`.", '"{}"'])
def test_no_renderer_links_what_was_captured(name: str, around: str) -> None:
    text = around.replace("{}", name)
    assert name.strip("[]()<>!`\\") not in outside_code(_text(text)) or not name.strip("\\")
    row = f"| {_cell(text)} | b |"
    cells = f"| a | b |\n|---|---|\n{row}\n"
    outside_code(cells)
    tokens = MarkdownIt("commonmark").enable("table").parse(cells)
    assert sum(token.type == "td_open" for token in tokens) == 2
    (shown,) = [t for t in tokens if t.type == "inline" and t.map == [2, 3]][:1]
    told = "".join(each.content for each in shown.children or [])
    assert told.replace(" ", "") == text.replace("`ours`", "ours").replace(" ", "")


def test_a_report_of_hostile_traffic_links_nothing(tmp_path: Path) -> None:
    evil = " https://evil.example www.evil.example a@b.example @all #1 <b> | `x"
    capture = hostile_names(SHOP, tmp_path / "evil.pcapng", evil)
    shown = outside_code(made(tmp_path, capture, name="r.md"))
    assert not re.search(r"evil|example|@|#\d|://|<b>", shown)


def test_words_and_numbers_of_a_report_stay_text() -> None:
    assert _text("a|b<c>`d`") == "`` a|b<c>`d` ``"
    assert _code("a ``` b").startswith("````")
    text = "client opened 12 connections, 1,024 a minute: p99 is 3.1 ms (see below)"
    assert _text(text) == text


def test_the_map_is_on_the_first_screen(page: str, tmp_path: Path) -> None:
    assert page.index('id="map"') < page.index('id="time"') < page.index('id="findings"')
    chart = next(each for each in re.findall("<svg.*?</svg>", page, re.S) if "Applications" in each)
    assert "<title>orders-svc writes to orders: " in chart
    assert re.search(r"<title>billing reads orders: .*, group billing</title>", chart)
    # Pseudonyms of clients differ by a number: they are no application.
    hidden = made(tmp_path, SHOP, "--redact", "all")
    assert "each is an application of its own" in hidden
    titles = re.findall(r"<title>(client-\d+|[^<]*?) writes to topic-\d+:", hidden)
    assert titles
    assert all(re.fullmatch(r"client-\d+", name) for name in titles)


def test_a_request_log_has_no_packets_and_its_commands_its_zone(tmp_path: Path) -> None:
    log = tmp_path / "kafka-request.log"
    log.write_bytes(sample_files()["k272-text-kafka-request.log"])
    for name in ("a.md", "a.html"):
        done = run("report", log, "--time-zone", "Asia/Tokyo", "-o", tmp_path / name)
        assert done.exit_code == 0
        text = unescape((tmp_path / name).read_text())
        assert "kafka-request.log --time-zone Asia/Tokyo" in text
        assert not re.search(r"\bpackets\b(?! and sizes)|received one|\b0 connections", text)
