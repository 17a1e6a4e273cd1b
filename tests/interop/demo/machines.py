"""Which program of the shop is on which machine, and whose packets make the demo."""

from tests.interop.demo import actors

# Two of billing's members share no machine.
PROGRAMS = (
    *("orders-svc", "billing-1", "billing-2", "billing-3", "legacy-export", "mailer"),
    *actors.ACTORS,
)
MACHINES = {name: f"10.0.2.{number}" for number, name in enumerate(PROGRAMS, 11)}
IN_THE_DEMO = (
    # A password that was changed, an address that leads nowhere, a client that Kafka 4 refuses.
    *("crm-sync", "reports-ui", "legacy-export"),
    # A group with a member that stops and one that is too slow, and who writes what it reads.
    *("billing-1", "billing-2", "billing-3", "orders-svc"),
    # Who meets the broker that stands still, and the one that goes down.
    *("checkout", "inventory-sync"),
    # Nothing is wrong with these.
    *("invoicing", "ledger"),
)
"""A few troubles that can be told apart on one screen: with all of the shop's it is a list of
nineteen."""
