"""What the table of nodes says of an address: whether it was reached, and what may be wrong."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final, NamedTuple

from kafkascope.analyzer.statistics.cluster.addresses import is_address, is_loopback, is_private
from kafkascope.analyzer.statistics.cluster.reach import Sums
from kafkascope.analyzer.statistics.cluster.reach_judged import JudgedReach, NodeKey

MOST_HOSTS: Final = 3


class Contacted(NamedTuple):
    """Whether an address was reached."""

    word: str
    attempts: int | None
    exchanges: int | None
    remarks: list[str]


def contact_of(key: NodeKey, judged: JudgedReach, sums: Sums) -> Contacted:
    """Say whether those who were told a node's address reached it, and what anybody did there."""
    word, host = judged.best(key), key[2]
    remarks = _remarks(key, judged)
    found = [sums[place] for place in judged.places(key) if place in sums]
    attempts = sum(each.count for _, each in found)
    exchanges = sum(contact.exchanges for contact, _ in found)
    if word == "failed":
        remarks.append("refused" if judged.attempts(key).refused else "no answer to SYN")
    elif word == "no":
        others = exchanges and judged.hosts_of(key) is not None
        remarks.append("contacted only by other clients" if others else "never contacted")
    if not is_address(host) and host != "localhost":
        hosts = judged.hosts_of(key)
        if hosts is not None:
            remarks.append(f"resolves to {', '.join(sorted(hosts)[:MOST_HOSTS])}")
        elif word == "likely":
            remarks.append("a host name, matched by port")
        else:
            remarks.append("a host name that the capture does not resolve")
    if word in ("no", "unknown"):
        return Contacted(word, None, None, remarks)
    return Contacted(word, attempts or None, exchanges, remarks)


def _remarks(key: NodeKey, judged: JudgedReach) -> list[str]:
    """Say what may be wrong with an address for those who were told it."""
    host = key[2]
    strangers = sorted({place for _, place in judged.told(key) if not is_loopback(place)})
    if is_loopback(host) and strangers:
        return [f"loopback, advertised to {strangers[0]}"]
    if is_address(host) and ip_address(host).is_unspecified:
        return ["unspecified address"]
    if is_private(host):
        outside = sorted({each[1] for each in judged.told(key) if judged.is_outside(key, each)})
        return [f"private, advertised to {outside[0]}"] if outside else []
    return []
