"""What the pages show is true: commands are run, files compared, links followed.

In a fenced block `console`, a line `$ command` is run by a shell in a folder that holds a copy of `examples/`, with the
`arcfleet` of this environment; the lines below it are what it prints on both streams. `...` stands for any text in a
line, or, alone on a line, for any lines. A command must succeed, unless `$ echo $?` comes next and shows its exit code.
A block whose first line says `file=NAME` is that file: equal to the one in the folder, or else put there.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

import afa.document
import afa.expression.limits
import afa.query.limits
import afa.source_text
import afa.tape
from afa.expression.functions import FUNCTIONS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = [page for page in PAGES if page.name != "local-kafka.md"]  # its broker runs until Ctrl-C; tests/local starts it
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


class Block(NamedTuple):
    line: int
    info: str
    body: str


class Command(NamedTuple):
    line: int
    text: str
    expected: list[str]


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        yield Block(text.count("\n", 0, found.start()) + 1, found["info"], found["body"])


def commands(block: Block) -> list[Command]:
    found: list[Command] = []
    for offset, line in enumerate(block.body.splitlines(), 1):
        if line.startswith("$ "):
            found.append(Command(block.line + offset, line.removeprefix("$ "), []))
        else:
            assert found, f"line {block.line + offset}: output before the first command"
            found[-1].expected.append(line)
    return found


def as_regex(expected: list[str]) -> str:
    """The lines as a pattern for the whole output; trailing blanks do not count."""
    lines = [line.rstrip() for line in expected]
    return "".join(
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n" for line in lines
    )


@dataclass
class Shell:
    """A reader's terminal. The exit code of a command is known to the next one, as `$?`."""

    folder: Path
    exit_code: int = 0

    def run(self, command: str) -> str:
        if command == "echo $?":
            shown, self.exit_code = f"{self.exit_code}\n", 0
            return shown
        assert self.exit_code == 0, f"the command before `{command}` ended with {self.exit_code}"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        self.exit_code = done.returncode
        return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def put_file(folder: Path, name: str, block: Block) -> None:
    path = folder / name
    if path.exists():
        assert path.read_text(encoding="utf-8") == block.body, f"line {block.line}: {name} reads otherwise"
    path.write_text(block.body, encoding="utf-8")


def follow(page: Path, folder: Path) -> int:
    """Does what the page says, block by block; the number of commands run."""
    shell, count = Shell(folder), 0
    for block in blocks(page):
        if found := re.search(r"\bfile=(\S+)", block.info):
            put_file(folder, found[1], block)
        for command in commands(block) if block.info == "console" else ():
            shown = shell.run(command.text)
            place = f"{page.name}:{command.line}: $ {command.text}"
            assert re.fullmatch(as_regex(command.expected), shown), f"{place}\nprints\n{shown}"
            count += 1
    assert shell.exit_code == 0, f"the last command of {page.name} failed"
    return count


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
