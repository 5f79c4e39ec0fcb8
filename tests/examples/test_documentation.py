"""What the pages show is true: commands are run, files compared, links followed; `support/pages.py` says how."""

import re
import shutil
from pathlib import Path

import pytest
from support.pages import FENCE, Shell, as_regex, blocks, follow

import afa.document
import afa.expression.limits
import afa.query.limits
import afa.source_text
import afa.tape
from afa.expression.functions import FUNCTIONS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# These need a broker: tests/local and tests/fleet start one.
RUN = [page for page in PAGES if page.name not in ("local-kafka.md", "fleet.md", "two-ends.md")]
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_is_what_happens(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    follow(page, tmp_path)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for found in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        name, _, anchor = found["target"].partition("#")
        target = page.parent / name if name else page
        assert name.startswith("https://") or target.exists(), f"{page.name} links to {name}, which is not there"
        assert not anchor or anchor in anchors(target), f"{page.name} links to #{anchor}, which {name} does not have"


def test_the_picture_is_what_the_command_draws() -> None:
    drawn = Shell(ROOT).run("arcfleet graph examples/q1.yaml")
    kept = (ROOT / "docs" / "img" / "q1.svg").read_text(encoding="utf-8")
    assert kept == drawn, "draw it again: arcfleet graph examples/q1.yaml > docs/img/q1.svg"


def test_the_two_commands_of_the_readme_are_targets_of_make() -> None:
    shown = {line for block in blocks(ROOT / "README.md") if block.info == "sh" for line in block.body.splitlines()}
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    asked = {line.split()[1] for line in shown if line.startswith("make ")}
    assert {"demo", "test"} <= asked <= set(targets)


def test_the_readme_names_what_set_up_checks_for() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for file, tool, key in (("pyproject.toml", "Python", "requires-python"), ("Cargo.toml", "Rust", "rust-version")):
        manifest = (ROOT / file).read_text(encoding="utf-8")
        (version,) = re.findall(rf'^{key} = "(?:>=)?([\d.]+)"', manifest, re.MULTILINE)
        assert f"{tool} {version}" in readme


def test_the_limits_are_those_of_the_code() -> None:
    modules = (afa.document, afa.expression.limits, afa.query.limits, afa.source_text, afa.tape)
    constants = {name.lower(): value for module in modules for name, value in vars(module).items()}
    pages = "\n".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("patterns.md", "queries.md"))
    shown = re.findall(r"^\| `(max_\w+)` \| ([\d,]+) \|", pages, re.MULTILINE)
    assert {name: int(value.replace(",", "")) for name, value in shown} == {
        name: value for name, value in constants.items() if name.startswith("max_")
    }


def test_every_function_is_documented() -> None:
    page = (ROOT / "docs" / "patterns.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(\w+)\([a-z, .]+\)`", page)) == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("expected", "shown", "same"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a"], "a\nb\n", False),
        (["a ... c"], "a b c\n", True),
        (["a", "...", "d"], "a\nb\nc\nd\n", True),
        (["a.c"], "abc\n", False),
    ],
)
def test_expected_output_is_compared(expected: list[str], shown: str, same: bool) -> None:
    assert bool(re.fullmatch(as_regex(expected), shown)) is same


def test_a_page_that_lies_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo true\nfalse\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page.md:2: \$ echo true"):
        follow(page, tmp_path)
    page.write_text("```console\n$ false\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="failed"):
        follow(page, tmp_path)
