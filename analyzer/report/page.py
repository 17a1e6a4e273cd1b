"""The report as one HTML file without scripts, fonts and links to the network; for light and dark
screens, and for print. Everything from traffic is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Final

from kafkascope.analyzer.findings import Cause, Finding
from kafkascope.analyzer.findings.causes import apart, counted, names_of
from kafkascope.analyzer.findings.model import exchanges_command
from kafkascope.analyzer.render.cells import size
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.report.charts import escaped
from kafkascope.analyzer.report.collect import COMPLETE, ReportFacts, summary
from kafkascope.analyzer.report.limits import LIMITS
from kafkascope.analyzer.report.sections import ReportTable, Section
from kafkascope.analyzer.text import plural
from kafkascope.times import iso_ns

# Tables with more rows are folded, so that sections can be read in a row.
UNFOLDED_ROWS: Final = 8
# Longer texts than this many characters make a column wider.
NAME: Final = 14
SENTENCE: Final = 48
SIGNS: Final = {"error": "!", "warning": "?", "note": "~", "chat": "·"}

# Colours of Okabe and Ito, darker for text on white. No fact is shown by colour alone.
STYLE: Final = """
:root{color-scheme:light dark;--fg:#1b1b1f;--dim:#5c5c66;--bg:#fff;--card:#f6f6f8;--line:#d9d9e0;
--main:#0072b2;--second:#56b4e9;--bad:#d55e00;--warn:#9a6400;--note:#0072b2;--link:#005a8e}
@media(prefers-color-scheme:dark){:root{--fg:#e6e6ea;--dim:#a0a0aa;--bg:#131317;--card:#1d1d23;
--line:#34343d;--main:#4aa3dc;--second:#a9d8f5;--bad:#f0803c;--warn:#e6a93c;--note:#6db8e8;
--link:#7cc0ee}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1.5rem;font:15px/1.5 system-ui,sans-serif;
color:var(--fg);background:var(--bg)}
h1{font-size:1.6rem;margin:0 0 .2rem}h2{font-size:1.25rem;margin:2.4rem 0 .3rem;
border-top:1px solid var(--line);padding-top:1.2rem}h3{font-size:1rem;margin:0}
p{margin:.3rem 0 .7rem}a{color:var(--link)}.dim,footer{color:var(--dim)}
code,pre{font:13px/1.45 ui-monospace,monospace}code{background:var(--card);padding:.05rem .3rem;
border-radius:3px;overflow-wrap:anywhere}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;margin:1rem 0;padding:0}
dl.facts{display:flex;flex-wrap:wrap;gap:.6rem;margin:1rem 0}
dl.facts div{background:var(--card);border-radius:6px;padding:.5rem .9rem;min-width:7rem}
dl.facts dt{color:var(--dim);font-size:.8rem}dl.facts dd{margin:0;font-size:1.15rem;font-weight:600}
article{background:var(--card);border-left:4px solid var(--line);border-radius:4px;
padding:.6rem .9rem;margin:.6rem 0;break-inside:avoid}
article.error{border-color:var(--bad)}article.warning{border-color:var(--warn)}
article.note{border-color:var(--note)}article h3{font-weight:600}
.sev{display:inline-block;min-width:4.8rem;font-weight:700}
.error .sev{color:var(--bad)}.warning .sev{color:var(--warn)}.note .sev{color:var(--note)}
article p{margin:.25rem 0}
.wide{overflow:auto;max-height:36rem}
table{border-collapse:collapse;font-size:13px;margin:.4rem 0 .2rem}
caption{text-align:left;font-weight:600;padding:.6rem 0 .2rem}
th,td{padding:.22rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{position:sticky;top:0;background:var(--bg)}.r{text-align:right;
font-variant-numeric:tabular-nums;white-space:nowrap}td{overflow-wrap:break-word;max-width:34rem}
td code{overflow-wrap:normal;white-space:nowrap;padding-left:0;background:none;color:var(--dim)}
td.m{min-width:9.5rem}td.l{min-width:19rem}
tr.breaks td{color:var(--bad)}tr.breaks td:first-child{font-weight:600}
figure{margin:.8rem 0;break-inside:avoid}figcaption{color:var(--dim);font-size:.85rem;
white-space:pre-wrap}
svg.chart{width:100%;height:auto;max-height:42rem}svg .t{font:12px system-ui,sans-serif;
fill:var(--fg)}svg .end{text-anchor:end}svg .dim{fill:var(--dim)}svg .mark{fill:var(--fg);
font-weight:700;font-size:11px}
.main{fill:var(--main)}.second{fill:var(--second)}.bad{fill:var(--bad)}
rect.application{fill:var(--card);stroke:var(--dim)}rect.topic{fill:var(--bg);stroke:var(--main)}
path.writes,path.reads{fill:none;stroke:var(--main);stroke-opacity:.55}
path.reads{stroke:var(--second);stroke-opacity:.8}
.trip{fill:var(--dim)}.serve{fill:var(--warn)}
.axis{stroke:var(--dim)}.grid{stroke:var(--line);stroke-dasharray:3 3}
.stable{fill:var(--main)}.join{fill:var(--warn)}.sync{fill:var(--second)}.left{fill:var(--dim)}
.gone{fill:var(--bad)}.wait{fill:none;stroke:var(--warn);stroke-dasharray:2 3}
details>summary{cursor:pointer;color:var(--link);overflow-wrap:anywhere}
article details>article{background:var(--bg)}
#summary{margin:.8rem 0 0}#summary p{margin:.1rem 0}#time h2{margin-top:.8rem;padding-top:.6rem}
#summary dl.facts{margin:.6rem 0}
@media print{:root{color-scheme:light;
--fg:#1b1b1f;--dim:#5c5c66;--bg:#fff;--card:#f6f6f8;--line:#d9d9e0;
--main:#0072b2;--second:#56b4e9;--bad:#d55e00;--warn:#9a6400;--note:#0072b2;--link:#005a8e}
body{max-width:none;padding:0;font-size:10pt}nav{display:none}
details::details-content{content-visibility:visible;display:block}.wide{overflow:visible;max-height:none}th{position:static}details{display:block}a{color:inherit;
text-decoration:none}table{font-size:7pt;width:100%}th,td{padding:.15rem .3rem}
td.m,td.l{min-width:0;overflow-wrap:anywhere}th{overflow-wrap:normal}tr{break-inside:avoid}
.y{display:none}svg.chart{max-height:20rem}h2{break-after:avoid}caption{break-after:avoid}}
@page{margin:14mm 12mm}
"""


def page(facts: ReportFacts, parts: list[Section], release: str, redacted: str) -> str:
    """Return the HTML file."""
    title = f"Kafka traffic: {', '.join(facts.inputs)}"
    # The map and the first chart are beside the summary: all are visible without scrolling.
    first = len(list(takewhile(lambda part: part.charts, parts[:2])))
    summed_up = "".join(f"<p>{_prose(sentence)}</p>" for sentence in summary(facts))
    out = [
        "<!DOCTYPE html>\n",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        # In case anything is not escaped: nothing may run, nothing may be loaded.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none';style-src 'unsafe-inline'\">",
        f"<title>{escaped(title)}</title><style>{STYLE}</style></head><body>",
        f"<header><h1>{escaped(title)}</h1>",
        f'<p class="dim">{escaped(_range(facts))}</p></header>',
        f'<section id="summary">{summed_up}{_key_numbers(facts)}</section>',
        "<main>",
        *(_section(part) for part in parts[:first]),
        _contents(parts),
        _findings(facts),
        *(_section(part) for part in parts[first:]),
        _complete(facts),
        "</main>",
        f"<footer><p>{escaped(redacted)} Made by kafkascope; the same numbers come from the "
        "commands above.</p></footer></body></html>\n",
    ]
    return "".join(out)


def _range(facts: ReportFacts) -> str:
    if facts.span.first_ns is None:
        return "no exchanges"
    only = f"; filter: {facts.filter_text}" if facts.filter_text else ""
    return f"{iso_ns(facts.span.first_ns)}, {facts.lasted}{only}; all times are UTC"


def _key_numbers(facts: ReportFacts) -> str:
    counts = counted(facts.causes)
    packets = ("packets", f"{facts.packets:,}"), ("captured", size(facts.captured_bytes))
    numbers = (
        ("exchanges", f"{facts.span.exchanges:,}"),
        ("clients", f"{len(facts.findings.base.clients.rows()):,}"),
        ("connections", f"{facts.connections:,}"),
        *(() if facts.of_logs else packets),
        ("error findings", f"{counts['error']:,}"),
        ("warning findings", f"{counts['warning']:,}"),
    )
    cells = (
        f"<div><dt>{escaped(what)}</dt><dd>{escaped(value)}</dd></div>" for what, value in numbers
    )
    return f'<dl class="facts">{"".join(cells)}</dl>'


def _contents(parts: Iterable[Section]) -> str:
    links = [("findings", "Findings"), *((part.id, part.title) for part in parts)]
    links.append(("complete", "Completeness"))
    lines = (f'<li><a href="#{name}">{escaped(title)}</a></li>' for name, title in links)
    return f"<nav><ul>{''.join(lines)}</ul></nav>"


def _findings(facts: ReportFacts) -> str:
    times = Times("u")
    out = ['<section id="findings"><h2>Findings</h2>']
    if not facts.causes:
        out.append("<p>No findings.</p>")
    trouble, chats = apart(facts.causes)
    out += [_cause(each, facts, times) for each in trouble[: LIMITS.causes]]
    out.append(_left_out(len(trouble)))
    if chats:
        inner = "".join(_cause(each, facts, times) for each in chats[: LIMITS.causes])
        what = f"{plural(len(chats), 'chat')}, normal but often mistaken for problems: "
        out.append(_folded(what + names_of(chats), inner + _left_out(len(chats))))
    out.append(_command(f"kafkascope check {facts.words}"))
    return "".join([*out, "</section>"])


def _left_out(count: int) -> str:
    rest = count - LIMITS.causes
    return f'<p class="dim">{rest:,} more: kafkascope check</p>' if rest > 0 else ""


def _cause(cause: Cause, facts: ReportFacts, times: Times) -> str:
    """Return a cause, with its consequences folded into it."""
    if not cause.consequences:
        return _finding(cause.finding, facts, times)
    count = len(cause.consequences)
    inner = "".join(_finding(each, facts, times) for each in cause.consequences[: LIMITS.causes])
    folded = _folded(f"consequences: {cause.therefore()}", inner + _left_out(count))
    return _finding(cause.finding, facts, times, folded)


def _finding(finding: Finding, facts: ReportFacts, times: Times, consequences: str = "") -> str:
    when = times.behind(finding.first_ns, finding.last_ns)
    out = [
        f'<article class="{finding.severity}"><h3><span class="sev">'
        f"{SIGNS[finding.severity]} {finding.severity}</span> {escaped(finding.text)}</h3>",
        f'<p>{_prose(finding.advice)} <span class="dim">{escaped(finding.name)},'
        f" {plural(finding.count, 'event')}{escaped(when)}</span></p>",
    ]
    if finding.filter:
        command = exchanges_command(finding, facts.words)
        out.append(f"<p><code>{escaped(command)}</code></p>")
    return "".join([*out, consequences, "</article>"])


def _prose(text: str) -> str:
    """Return a sentence, with the commands between backticks as code."""
    return "".join(
        f"<code>{escaped(part)}</code>" if index % 2 else escaped(part)
        for index, part in enumerate(text.split("`"))
    )


def _command(text: str) -> str:
    return f'<p class="dim">Reproduce with: <code>{escaped(text)}</code></p>' if text else ""


def _section(part: Section) -> str:
    out = [f'<section id="{part.id}"><h2>{escaped(part.title)}</h2><p>{_prose(part.says)}</p>']
    for legend, svg in part.charts:
        caption = f"<figcaption>{escaped(legend)}</figcaption>" if legend else ""
        out.append(f"<figure>{caption}{svg}</figure>")
    for table in part.tables:
        # A chart already shows the numbers of `time`.
        folds = part.id == "time" or len(table.rows) > UNFOLDED_ROWS
        lines = plural(len(table.rows) + table.left_out, "line")
        text = _table(table)
        out.append(_folded(f"{table.caption}: {lines}", text) if folds else text)
    out.append(_command(part.command))
    return "".join([*out, "</section>"])


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{escaped(title)}</summary>{inner}</details>"


def _table(table: ReportTable) -> str:
    heads = "".join(
        f'<th scope="col"{" class=r" if right else ""}>{escaped(title)}</th>'
        for title, right in zip(table.titles, table.right, strict=True)
    )
    evidence = any(table.filters)
    if evidence:
        heads += '<th scope="col" class=y>-Y</th>'
    widths = [
        " class=r" if right else _width(row[at] for row in table.rows)
        for at, right in enumerate(table.right)
    ]
    rows = []
    for index, row in enumerate(table.rows):
        kind = ' class="breaks"' if "breaks" in row and "verdict" in table.titles else ""
        cells = "".join(
            f"<td{width}>{escaped(text)}</td>" for text, width in zip(row, widths, strict=True)
        )
        if evidence:
            filter_ = table.filters[index]
            cells += f"<td class=y>{f'<code>{escaped(filter_)}</code>' if filter_ else ''}</td>"
        rows.append(f"<tr{kind}>{cells}</tr>")
    more = ""
    if table.left_out:
        more = f'<p class="dim">{table.left_out:,} more rows: see the command below.</p>'
    return (
        f'<div class="wide"><table><caption>{escaped(table.caption)}</caption><thead><tr>{heads}'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{more}"
    )


def _width(texts: Iterable[str]) -> str:
    """Return the class that keeps a column of names or sentences readable; a table may scroll."""
    longest = max(map(len, texts), default=0)
    return " class=l" if longest > SENTENCE else " class=m" if longest > NAME else ""


def _complete(facts: ReportFacts) -> str:
    lines = "".join(f"<li>{escaped(each)}</li>" for each in facts.remarks or [COMPLETE])
    return f'<section id="complete"><h2>Completeness</h2><ul>{lines}</ul></section>'
