"""Links of documents lead somewhere: to files and headings that are there; those of the README also
from a page that is not in the repository."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from kafkascope.tui.cli import main
from tests.kit.run import run
from tests.kit.samples import DOCUMENTS, FOLDERS, ROOT

LINK = re.compile(r"\]\(([^()\s]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)
NAMED = re.compile(
    rf"`((?:analyzer|bridges|dissectors|kernel|library|schemas|tui|{'|'.join(FOLDERS)})/[\w./-]+\.(?:py|md|json|txt))`"
)
INVENTED = {"dissectors/messages/close_account.py"}
REFERENCE = re.compile(r"(?<!\])\[([^\]\[]+)\](?:\[([^\]]+)\])?(?![(\[:])")


def links(path: Path) -> list[str]:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    return [one or other for one, other in LINK.findall(text)]


def anchors(path: Path) -> set[str]:
    """As GitHub makes them of headings."""
    heads = re.findall(r"^#+ +(.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def urls(folder: Path) -> dict[str, str]:
    found: dict[str, str] = tomllib.loads((folder / "pyproject.toml").read_text())["project"][
        "urls"
    ]
    return found


def local(link: str, repository: str) -> str | None:
    """The path in this repository that an absolute link leads to; None for other places."""
    raw = repository.replace("https://github.com", "https://raw.githubusercontent.com")
    for start in (f"{repository}/blob/main/", f"{repository}/tree/main/", f"{raw}/main/"):
        if link.startswith(start):
            return link[len(start) :].partition("?")[0]
    return None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for link in links(path):
        place, _, anchor = link.partition("#")
        if "://" in place:
            continue
        target = path.parent / place if place else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_are_there(path: Path) -> None:
    named = set(NAMED.findall(path.read_text("utf-8"))) - INVENTED
    assert not [each for each in named if not (ROOT / each).exists()]


FOREIGN = {
    *("--archives", "--deploy-mode", "--files", "--py-files"),  # of Spark
    *("--kafkascope", "--kafkascope-dir"),  # of pytest, by the plugin
    *("--any-python", "--every", "--only", "--real", "--soak"),  # of benchmarks and tools
}


def options_of(command: click.Command) -> set[str]:
    context = click.Context(command)
    found = {name for each in command.get_params(context) for name in each.opts}
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            found |= options_of(below)
    return found


def test_options_that_are_named_are_there() -> None:
    known = FOREIGN | options_of(main)
    pages = [path for path in DOCUMENTS if "decisions" not in path.parts]
    wrong = {
        (path.name, name)
        for path in pages
        for name in re.findall(r"`(--[a-z][a-z\d-]+)", path.read_text("utf-8"))
        if name not in known
    }
    assert not wrong


def test_the_readme_works_on_an_index_page() -> None:
    repository = urls(ROOT)["Repository"]
    found = links(ROOT / "README.md")
    assert len(found) >= 8
    for link in found:
        path = local(link, repository)
        assert path is not None, f"{link} is dead outside of the repository"
        assert (ROOT / path).exists(), link
    pictures = [link for link in found if ".svg" in link]
    assert len(pictures) == 3
    # As plain text otherwise, which no page shows.
    assert all(link.endswith(".svg?sanitize=true") for link in pictures)


def test_references_of_the_readme_are_defined() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    defined = set(re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE))
    prose = re.sub(r"^ {4}.*$|`[^`\n]*`", "", text, flags=re.MULTILINE)
    used = {second or first for first, second in REFERENCE.findall(prose)}
    assert used == defined


@pytest.mark.parametrize("folder", [ROOT, ROOT / "bindings" / "python"], ids=["", "plugin"])
def test_packages_name_places_that_are_there(folder: Path) -> None:
    found = urls(folder)
    assert found["Repository"] == urls(ROOT)["Repository"]
    paths = [local(url, found["Repository"]) for url in found.values()]
    assert all((ROOT / path).exists() for path in paths if path)
    assert len([path for path in paths if path]) >= 1


def test_the_version_is_documented_and_told() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    told = run("--version", prog_name="kafkascope").output
    assert told == f"kafkascope {version}\n"
    assert "`kafkascope --version`" in (ROOT / "docs" / "commands.md").read_text()


# --- the README prints what its commands print on a terminal of 80 columns ------------------------


GOLDEN = ROOT / "tests" / "analyzer" / "commands" / "terminals"
README = (ROOT / "README.md").read_text("utf-8")


def test_it_has_120_lines_at_most() -> None:
    assert README.count("\n") <= 120


def test_answers_are_what_the_commands_print() -> None:
    answers = re.findall(r"^    \$ kafkascope (.*)\n((?:    .*\n)+)", README, re.MULTILINE)
    assert len(answers) == 3
    for command, answer in answers:
        name = "-".join(re.findall(r"\w+", command.replace("-", " ")))
        printed = (GOLDEN / f"{name}-80.txt").read_text("utf-8").splitlines()
        at = 0
        for line in (line[4:] for line in answer.splitlines() if line.strip() != "..."):
            at = printed.index(line, at) + 1


# --- the site of docs/ builds without warnings: no dead link or anchor, no page outsi -------------


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "https://github.com/kafkascope/kafkascope/blob/main/CHANGELOG.md" in page
