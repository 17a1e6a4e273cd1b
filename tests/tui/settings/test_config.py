"""Settings: what is followed, what is said about the rest; recent files."""

from pathlib import Path

import pytest

from kafkascope.tui.settings.config import config_path, read_config, recent, recent_path, remember

IDS = ["list.mark", "board.sort"]


def given(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_no_file_is_no_problem(tmp_path: Path) -> None:
    found = read_config(lambda: IDS, tmp_path / "none.toml")
    assert found.keys == {}
    assert found.said == []


def test_keys_and_the_rest_are_read(tmp_path: Path) -> None:
    text = 'theme = "nord"\nplain = true\n[keys]\n"list.mark" = "m, ctrl+k"\nboard.sort = "s"\n'
    found = read_config(lambda: IDS, given(tmp_path, text))
    assert (found.theme, found.plain) == ("nord", True)
    assert found.keys == {"list.mark": "m,ctrl+k", "board.sort": "s"}
    assert found.said == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[keys]\n"list.marc" = "m"', 'no action has the id "list.marc"; did you mean list.mark?'),
        ('[keys]\n"list.mark" = 3', "list.mark wants keys as a text"),
        ('thme = "x"', 'there is no setting "thme"; did you mean theme?'),
        ("theme = 3", "theme wants a text"),
        ('plain = "yes"', "plain wants true or false"),
        ("keys = 3", "keys wants a table"),
        ("theme = ", "nothing of it is used"),
        ("\udcff", "nothing of it is used"),
    ],
)
def test_what_cannot_be_followed_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    found = read_config(lambda: IDS, path)
    assert len(found.said) == 1
    assert said in found.said[0]
    assert not found.keys


def test_places_follow_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config_path() == tmp_path / "c" / "kafkascope" / "config.toml"
    assert recent_path() == tmp_path / ".local" / "state" / "kafkascope" / "recent.json"


def test_recent_files_may_have_names_that_are_no_text(tmp_path: Path) -> None:
    path, odd = tmp_path / "recent.json", tmp_path / "odd\udcff \u00e9.pcap"
    odd.touch()
    remember([str(odd)], path)
    assert recent(path) == [str(odd)]
    assert sorted(tmp_path.iterdir()) == sorted([path, odd])


def test_recent_files_the_last_one_first_without_those_that_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "recent.json"
    files = [tmp_path / name for name in ("a.pcap", "b.pcap")]
    for file in files:
        file.touch()
    remember([str(files[0])], path)
    remember([str(files[1]), "-", str(tmp_path / "none.pcap")], path)
    remember([str(files[0])], path)
    assert recent(path) == [str(files[0]), str(files[1])]
    files[0].unlink()
    assert recent(path) == [str(files[1])]


def test_a_broken_list_of_files_is_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "recent.json"
    path.write_text('{"a": 1}', encoding="utf-8")
    assert recent(path) == []
    path.write_text("[[", encoding="utf-8")
    assert recent(path) == []


def test_a_place_that_cannot_be_written_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    remember([str(tmp_path / "file")], tmp_path / "file" / "recent.json")
