"""Pages that are run: what they show is what happens.

In a fenced block `console`, a line `$ command` is run by a shell in a folder that holds a copy of `examples/`, with the
`arcfleet` of this environment; the lines below it are what it prints on both streams. `...` stands for any text in a
line, or, alone on a line, for any lines. A command must succeed, unless `$ echo $?` comes next and shows its exit code.
A block whose first line says `file=NAME` is that file: equal to the one in the folder, or else put there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


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
    variables: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0

    def run(self, command: str) -> str:
        if command == "echo $?":
            shown, self.exit_code = f"{self.exit_code}\n", 0
            return shown
        assert self.exit_code == 0, f"the command before `{command}` ended with {self.exit_code}"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb", **self.variables}
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


def follow(page: Path, folder: Path, variables: Mapping[str, str] | None = None) -> int:
    """Does what the page says, block by block, with more variables in the environment; the number of commands run."""
    shell, count = Shell(folder, variables or {}), 0
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
