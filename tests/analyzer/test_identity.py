"""Who a client is, when some of its traffic tells less than the rest."""

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.identity import Identity, absorbed, host_of, labels

IDENTITIES = st.builds(
    Identity,
    st.sampled_from([None, "", "app"]),
    st.sampled_from(["10.0.0.4", "10.0.0.5"]),
    st.sampled_from(["", "librdkafka", "java"]),
    st.sampled_from(["", "alice", "bob"]),
)


def test_traffic_before_the_library_was_told_is_of_the_same_client() -> None:
    before = Identity("app", "10.0.0.4", "", "")
    told = Identity("app", "10.0.0.4", "librdkafka 2.6.1", "")
    authenticated = Identity("app", "10.0.0.4", "librdkafka 2.6.1", "alice")
    found = absorbed([before, told, authenticated])
    assert set(found.values()) == {authenticated}


def test_two_libraries_under_one_id_stay_two_clients() -> None:
    old = Identity("app", "10.0.0.4", "librdkafka 1.9.2", "")
    new = Identity("app", "10.0.0.4", "librdkafka 2.6.1", "")
    unknown = Identity("app", "10.0.0.4", "", "")
    found = absorbed([old, new, unknown])
    assert found == {old: old, new: new, unknown: unknown}


def test_other_hosts_are_other_clients() -> None:
    here = Identity("app", "10.0.0.4", "", "")
    there = Identity("app", "10.0.0.5", "x 1", "")
    assert absorbed([here, there]) == {here: here, there: there}


@given(st.lists(IDENTITIES, max_size=9))
def test_what_is_part_of_another_is_found_as_by_looking_at_all(found: list[Identity]) -> None:
    for each, target in absorbed(found).items():
        better = [
            other
            for other in set(found)
            if other != each
            and other[:2] == each[:2]
            and each.software in ("", other.software)
            and each.user in ("", other.user)
        ]
        fullest = [other for other in better if other.software and other.user] or better
        (wanted,) = fullest if len(fullest) == 1 else [each]
        # That one may be part of another in its turn.
        assert target in (wanted, absorbed(found)[wanted])


def test_labels_name_the_host_only_where_it_matters() -> None:
    found = labels([("app", "10.0.0.4"), ("job", "10.0.0.4"), ("job", "10.0.0.5"), (None, "::1")])
    assert found == {
        ("app", "10.0.0.4"): "app",
        ("job", "10.0.0.4"): "job@10.0.0.4",
        ("job", "10.0.0.5"): "job@10.0.0.5",
        (None, "::1"): "::1",
    }


def test_hosts_of_addresses() -> None:
    assert host_of("[fe80::1]:9092") == "fe80::1"
    assert host_of("10.0.0.4:51422") == "10.0.0.4"
