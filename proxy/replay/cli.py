"""`kafkascope replay`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import FilePath, reading_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import safe, spelled
from kafkascope.errors import UNAVAILABLE, USAGE
from kafkascope.proxy.engine.directory import Address, whole_address, without_listener
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.sasl import PASSWORD

if TYPE_CHECKING:
    import ssl

    from kafkascope.analyzer.reading.reading import Reading
    from kafkascope.analyzer.session.session import Session
    from kafkascope.proxy.replay.outcome import Outcome
    from kafkascope.proxy.replay.peer import Reach
    from kafkascope.proxy.replay.plan import Permit, Plan
    from kafkascope.proxy.sasl import Credentials

DIFFERENT: Final = 1
PERCENTILES: Final = (0.5, 0.99)


class ReplayOptions(NamedTuple):
    """What is special to replay."""

    to: list[tuple[str, int]]
    speed: float | None
    permit: Permit
    prefix: str
    create: bool
    strict: bool
    reach: Reach


_target: Final = partial(setting, section="Target")


@command()
@reading_options(
    *("output", "form", "as_json"),
    without=["end"],
    helps={"form": "Output format: json, jsonl (default: text)"},
)
@_target("--to", "HOST:PORT[,...]", "Brokers of the target cluster", required=True)
@setting("--speed", "N|max", "Factor of the captured speed, or max", default="1")
@setting("--allow-writes", "", "Also send requests that change data or state")
@setting("--group-prefix", "PREFIX", "Prefix for groups and transactional IDs", default="")
@setting("--same-groups", "", "Use the captured groups; affects live members of the same groups")
@setting("--create-topics", "", "Create topics missing on the target")
@setting("--strict", "", "Also compare times, IDs, and other volatile values")
@_target("--timeout", "SECONDS", "Time to wait for a response", default=30.0)
@_target("--tls", "", "Use TLS, with certificate verification")
@_target("--cafile", "FILE", "CA bundle of the target; implies --tls", type=FilePath())
@_target("--sasl", "MECHANISM", "SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512")
@_target("--user", "NAME", f"User of --sasl; ${PASSWORD} is the password")
def replay(
    options: ReadOptions,
    to: str,
    speed: str,
    allow_writes: bool,
    group_prefix: str,
    same_groups: bool,
    create_topics: bool,
    strict: bool,
    timeout: float,
    tls: bool,
    cafile: str | None,
    sasl: str | None,
    user: str | None,
) -> int:
    """Resend captured requests and compare the responses.

    Only read-only requests are sent, unless --allow-writes is given; group requests also need
    --group-prefix or --same-groups. Requests not sent are counted by reason. Exits with 1 if
    responses differ.

    \b
      kafkascope replay prod.pcapng --to test-broker:9092 -Y 'client == billing'
      kafkascope replay load.pcapng --to new:9092 --speed max --allow-writes
    """
    if options.form in ("tsv", "csv"):
        raise click.UsageError("replay prints text or JSON: leave out --format, or use --json")
    if group_prefix and same_groups:
        raise click.UsageError("--group-prefix and --same-groups exclude each other: choose one")
    if bool(sasl) != bool(user):
        raise click.UsageError(
            "--sasl MECHANISM and --user NAME need each other: add the missing one"
        )
    from kafkascope.proxy.replay.peer import Reach
    from kafkascope.proxy.replay.plan import Permit

    settings = ReplayOptions(
        [_address(text.strip()) for text in to.split(",")],
        _speed(speed),
        Permit(allow_writes, bool(group_prefix) or same_groups),
        group_prefix,
        create_topics,
        strict,
        Reach(
            _tls(cafile) if tls or cafile else None,
            _credentials(sasl, user) if sasl and user else None,
            timeout,
            click.get_current_context().find_object(Limits) or LIMITS,
        ),
    )
    return _replay(options, settings)


def _address(text: str) -> Address:
    address = whole_address(without_listener(text), least=1)
    if address is None:
        raise click.BadParameter(f'"{text}": write HOST:PORT', param_hint="--to")
    return address


def _speed(text: str) -> float | None:
    if text == "max":
        return None
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e6:
        raise click.BadParameter(f'"{text}": write a number above 0, or max', param_hint="--speed")
    return found


def _tls(cafile: str | None) -> ssl.SSLContext:
    import ssl

    try:
        context = ssl.create_default_context(cafile=cafile)
    except (OSError, ssl.SSLError) as error:
        raise click.BadParameter(f"{cafile}: {error}", param_hint="--cafile") from None
    # From Python 3.13 on a certificate without key identifiers is refused, as many made at home
    # for Kafka are; clients take them, and chain, name and dates are verified all the same.
    context.verify_flags &= ~ssl.VerifyFlags.VERIFY_X509_STRICT
    return context


def _credentials(sasl: str, user: str) -> Credentials:
    from kafkascope.proxy.sasl import MECHANISMS, Credentials

    mechanism = sasl.upper()
    if mechanism not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise click.BadParameter(
            f"{mechanism} is not supported: choose from {known}", param_hint="--sasl"
        )
    if PASSWORD not in os.environ:
        raise click.UsageError(f"no password for {user}: set ${PASSWORD}")
    return Credentials(mechanism, user, os.environ[PASSWORD])


def _replay(options: ReadOptions, settings: ReplayOptions) -> int:
    from kafkascope.analyzer.reading.reading import Reading
    from kafkascope.analyzer.session.session import Session
    from kafkascope.proxy.replay.peer import PeerError
    from kafkascope.proxy.replay.plan import Plan

    try:
        with (
            Reading(options, spool=True, once=True) as reading,
            Output(options) as output,
        ):
            reading.demand_packets("replay")
            capture = reading.capture
            context = capture.context
            session = Session(context, capture.source.read, plaintext=capture.plaintext)
            plan = Plan(settings.permit)
            for _, exchange in reading.rows():
                plan.add(exchange, partial(session.add, exchange))
            damaged = reading.finish()
            outcome = asyncio.run(_run(reading, session, plan, settings, options))
            found = _print(outcome, plan, options, output)
    except PeerError as error:
        # Whatever stood in the file of -o stays: nothing was replayed.
        say(f"{error}")
        return UNAVAILABLE
    except Missing as error:
        say(f"{error}")
        return USAGE
    return damaged or (DIFFERENT if found or outcome.unanswered else 0)


class Missing(Exception):
    """Topics that the target lacks; one line for people."""


async def _run(
    reading: Reading, session: Session, plan: Plan, settings: ReplayOptions, options: ReadOptions
) -> Outcome:
    from kafkascope.proxy.replay.cluster import LiveCluster, known_versions
    from kafkascope.proxy.replay.remap import Remap
    from kafkascope.proxy.replay.run import Replay

    context = reading.capture.context
    cluster = LiveCluster(settings.to, settings.reach)
    try:
        await cluster.open()
        steps = plan.steps()
        topics = plan.topics(session, context.names, steps) - plan.created
        if topics:
            await cluster.refresh(sorted(topics))
        missing = {name for name in topics - cluster.topics if not name.startswith("__")}
        if missing and not settings.create:
            what = f"the target has no topic {_first(missing)}"
            raise Missing(f"{what}: create it, or give --create-topics")
        if missing:
            # Without Metadata of them, what the requests name is what is known.
            named = plan.named(session, context.names, steps, missing - plan.partitions.keys())
            partitions = named | plan.partitions
            refused = await cluster.create({name: partitions[name] for name in sorted(missing)})
            if refused:
                raise Missing(f"the target does not create {_first(refused)}")
        remap = Remap(prefix=settings.prefix, writes=settings.permit.writes)
        remap.cluster_id, remap.captured_cluster_id = cluster.cluster_id, plan.cluster_id
        for captured, live in zip(sorted(plan.nodes), sorted(cluster.nodes), strict=False):
            remap.nodes.learn(captured, live)
        if not options.quiet:
            address = f"{cluster.bootstrap[0]}:{cluster.bootstrap[1]}"
            nodes = len(cluster.nodes)
            peer = f"{nodes} node{'s' * (nodes != 1)}, {known_versions(cluster.versions)}"
            say(f"replaying to {address} ({peer})")

        def report(exchange: Any, text: str) -> None:
            if options.verbose:
                name = f"{exchange.api} v{exchange.api_version}"
                say(f"{exchange.number:>6}  {name:<28} {text}", bare=True)

        connected = session, context, plan, cluster, remap, settings.reach
        return await Replay(*connected, settings.speed, settings.strict, report).run()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        await cluster.close()


def _first(topics: Collection[str]) -> str:
    return ", ".join(map(spelled, sorted(topics)[:5])) + (", ..." if len(topics) > 5 else "")


# --- what came of it


def _print(outcome: Outcome, plan: Plan, options: ReadOptions, output: Output) -> int:
    """Print differences, latency and what was left out; the number of differences."""
    from kafkascope.proxy.replay.outcome import lines_of, not_answered

    findings = list(outcome.comparison.all())
    skipped = sorted(plan.skipped.items())
    unanswered = not_answered(findings)
    if unanswered:
        say(f"the target does not respond to {unanswered}")
    for text in outcome.remarks:
        say(text)
    if options.form in ("json", "jsonl"):
        _print_json(outcome, findings, skipped, output)
        return len(findings)
    for line, role in lines_of(findings):
        output.line(safe(line), role)
    if findings:
        output.line("")
    for line in _latency_lines(outcome):
        output.line(line)
    comparison = outcome.comparison
    summary = f"{outcome.sent} requests sent in {outcome.seconds:.1f} s: "
    summary += f"{comparison.same} responses equal, "
    summary += f"{comparison.different} different, {outcome.unanswered} without a response"
    if outcome.settled:
        summary += f", {outcome.settled} that the captured broker was not ready for"
    if outcome.unmatched:
        summary += f", {outcome.unmatched} without a decodable response in the capture"
    say(summary)
    for text in comparison.remarks:
        say(text)
    for (api, reason), count in skipped:
        say(f"not sent: {count} {api}: {reason}")
    return len(findings)


def _latency_lines(outcome: Outcome) -> list[str]:
    if not outcome.latencies:
        return []
    lines = [f"{'latency, ms':<28} {'n':>7} {'p50 then':>9} {'now':>9} {'p99 then':>9} {'now':>9}"]
    for api, latencies in sorted(outcome.latencies.items()):
        sides = [sorted(each) for each in zip(*latencies.kept, strict=True)]
        count = len(latencies.kept)
        places = (min(int(count * share), count - 1) for share in PERCENTILES)
        cells = [f"{side[place] / 1e6:>9.1f}" for place in places for side in sides]
        lines.append(f"{api:<28} {latencies.count:>7} {' '.join(cells)}")
    return lines


def _print_json(outcome: Outcome, findings: list[Any], skipped: list[Any], output: Output) -> None:
    from kafkascope.dissectors.codec.jsonform import dumps

    for each in findings:
        output.json_line(dumps({"schema": "replay-difference/1", **each._asdict()}))
    for (api, reason), count in skipped:
        line = {"schema": "replay-skipped/1", "api": api, "reason": reason, "count": count}
        output.json_line(dumps(line))
    of_outcome = ("unanswered", "settled", "unserved", "unmatched")
    summary = {
        "schema": "replay/1",
        "sent": outcome.sent,
        "same": outcome.comparison.same,
        "different": outcome.comparison.different,
        **{name: getattr(outcome, name) for name in of_outcome},
        "seconds": round(outcome.seconds, 6),
    }
    output.json_line(dumps(summary))
    sys.stdout.flush()
