"""What the linters cannot see: import directions, sizes, dead files, and words that must not be in the repository."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# package: what it may import of ours when it is itself imported
MAY_IMPORT = {
    "afa": {"afa"},
    "arcfleet": {"afa", "arcfleet"},
    "worker": {"afa", "arcfleet", "worker"},
    "coordinator": {"afa", "arcfleet", "coordinator"},
    "pipeline": {"afa", "arcfleet", "pipeline"},
}
# Commands start the processes of their role lazily; the engine has no such excuse.
MAY_IMPORT_LAZILY = {package: {"afa"} if package == "afa" else set(MAY_IMPORT) for package in MAY_IMPORT}
OURS = {*MAY_IMPORT, "schemas", "tests", "tools", "bench", "examples"}
NATIVE_DOOR = Path("afa/native_engine.py")

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 80
FUNCTION_LINES_USUAL = 40
USUAL_SHARE = 0.9

# Written so that they do not match themselves.
DENIED_WORDS = re.compile(
    r"(?<![\w.])/(?:work|root)/|pypi\.org|pythonhosted\.org|crates\.io|repo1?\.maven\.|maven\.org|npmjs\.org|golang\.org|debian\.org"
)
DENIED_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
DENIED_CALLS = {"eval", "exec", "yaml.load"}


@cache
def tracked() -> list[Path]:
    """The files of the repository, relative to its root; those that git would take, if there is a git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        paths = [Path(name) for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        hidden = {".git", ".venv", "target", "__pycache__"}
        paths = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        paths = [path for path in paths if not hidden & set(path.parts) and path.suffix != ".so"]
    return sorted(path for path in paths if (ROOT / path).is_file() and not (ROOT / path).is_symlink())


def text_of(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path), filename=str(path))


def python_files() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py"]


def product_files() -> list[Path]:
    return [path for path in python_files() if path.parts[0] in MAY_IMPORT]


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def base_of(node: ast.ImportFrom, path: Path) -> str:
    """The module that an import names, with its leading dots resolved."""
    if not node.level:
        return node.module or ""
    package = path.parts[: len(path.parts) - node.level]
    return ".".join((*package, *((node.module,) if node.module else ())))


def imports(tree: ast.AST, path: Path, lazy: bool = False) -> Iterator[tuple[str, bool, int]]:
    """Every imported name as (dotted name, inside a function, line)."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, lazy, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = base_of(node, path)
            yield from ((f"{base}.{alias.name}", lazy, node.lineno) for alias in node.names)
        else:
            inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from imports(node, path, inside)


def wrong_imports(path: Path, tree: ast.Module) -> Iterator[str]:
    package = path.parts[0]
    for name, lazy, line in imports(tree, path):
        top = name.split(".")[0]
        allowed = MAY_IMPORT_LAZILY[package] if lazy else MAY_IMPORT[package]
        if top in OURS and top not in allowed:
            yield f"{path}:{line}: {package} must not import {name}" + (" at module level" if not lazy else "")
        if name.startswith("afa._native") and path != NATIVE_DOOR:
            yield f"{path}:{line}: only {NATIVE_DOOR} imports the native module"


def call_name(node: ast.Call) -> str:
    return ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else ""


def unsafe_code(path: Path, tree: ast.Module) -> Iterator[str]:
    for name, _, line in imports(tree, path):
        if name.split(".")[0] in DENIED_MODULES:
            yield f"{path}:{line}: {name} runs code from data"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if call_name(node) in DENIED_CALLS:
            yield f"{path}:{node.lineno}: {call_name(node)}() runs code from data"
        if any(word.arg == "shell" and ast.unparse(word.value) != "False" for word in node.keywords):
            yield f"{path}:{node.lineno}: shell= lets data become commands"


def python_functions(path: Path, tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path}:{node.lineno} {node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def rust_functions(path: Path, text: str) -> Iterator[tuple[str, int]]:
    """By indentation, which rustfmt guarantees: a function ends at the first closing brace as deep as its `fn`."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        found = re.match(r"(\s*)(?:pub(?:\([^)]*\))? |const |async |unsafe |extern \"\w+\" )*fn (\w+)", line)
        if found and not line.endswith(("}", ";")):
            end = next((at for at in range(start, len(lines)) if lines[at] == found[1] + "}"), start)
            yield f"{path}:{start + 1} {found[2]}", end - start + 1


def functions(paths: list[Path]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for path in paths:
        found += python_functions(path, tree_of(path)) if path.suffix == ".py" else rust_functions(path, text_of(path))
    return found


def is_entry_point(path: Path) -> bool:
    return path.name in {"__init__.py", "__main__.py"} or '__name__ == "__main__"' in text_of(path)


def names_used() -> set[str]:
    """Every dotted name that any Python file imports, or holds as a string to import by."""
    used: set[str] = set()
    for path in python_files():
        used |= {name for name, _, _ in imports(tree_of(path), path)}
        used |= {
            node.value
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    return used | {prefix for name in used for prefix in [name.rpartition(".")[0]]}


def test_import_directions() -> None:
    assert not [fault for path in product_files() for fault in wrong_imports(path, tree_of(path))]


def test_no_code_from_data() -> None:
    assert not [fault for path in python_files() for fault in unsafe_code(path, tree_of(path))]


def test_files_are_short() -> None:
    lengths = {str(path): len(text_of(path).splitlines()) for path in tracked() if path.suffix in {".py", ".rs"}}
    assert not {path: lines for path, lines in lengths.items() if lines > FILE_LINES_MAX}


def test_functions_are_short() -> None:
    everywhere = functions([path for path in tracked() if path.suffix in {".py", ".rs"}])
    assert not [(name, lines) for name, lines in everywhere if lines > FUNCTION_LINES_MAX]
    product = functions([*product_files(), *(path for path in tracked() if path.suffix == ".rs")])
    long = [(name, lines) for name, lines in product if lines > FUNCTION_LINES_USUAL]
    assert len(long) <= (1 - USUAL_SHARE) * len(product), long


def test_no_dead_module() -> None:
    used = names_used()
    assert not [str(path) for path in product_files() if not is_entry_point(path) and module_name(path) not in used]


@pytest.mark.parametrize("folder", ["docs", "examples"])
def test_no_dead_page_or_example(folder: str) -> None:
    """A test or a page names it, or another file of its group: q1.yaml comes with q1.jsonl."""
    readers = [
        path
        for path in tracked()
        if path.suffix == ".md" or path.parts[0] in {"tests", "Makefile"} or path.match("examples/*.py")
    ]
    texts = {path: text_of(path) for path in readers}
    for path in (path for path in tracked() if path.parts[0] == folder):
        group = re.escape(path.name.partition(".")[0])
        mention = re.compile(rf"(?<![\w-]){group}\.\w|[\"']{group}[\"']")
        assert any(mention.search(text) for reader, text in texts.items() if reader != path), f"nothing mentions {path}"


def test_no_folder_shadows_a_package() -> None:
    """docker/ would hide the client of that name, and tests/afa, as tests/ is on the path, the engine."""
    plain = {Path("docker"), Path("helm"), *(Path("tests", package) for package in MAY_IMPORT)}
    assert not [str(path) for path in tracked() if path.name == "__init__.py" and plain & {*path.parents}]


def test_no_machine_and_no_registry_is_named() -> None:
    faults = [
        f"{path}:{number}: {line.strip()[:80]}"
        for path in tracked()
        if path.name != "Cargo.lock"  # cargo writes its registry's name into each entry
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if DENIED_WORDS.search(line)
    ]
    assert not faults


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("afa/x.py", "import arcfleet"),
        ("afa/x.py", "def f():\n    from worker import loop"),
        ("afa/x.py", "from afa import _native"),
        ("afa/x.py", "from . import _native"),
        ("afa/expression/x.py", "from .._native import version"),
        ("afa/x.py", "import schemas.pattern"),
        ("arcfleet/x.py", "if True:\n    import worker.loop"),
        ("worker/x.py", "import coordinator"),
    ],
)
def test_a_wrong_import_is_found(path: str, source: str) -> None:
    assert list(wrong_imports(Path(path), ast.parse(source)))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("afa/native_engine.py", "from afa import _native"),
        ("arcfleet/x.py", "def f():\n    import worker.loop"),
        ("coordinator/x.py", "import afa, arcfleet\nfrom . import y"),
    ],
)
def test_a_right_import_is_left_alone(path: str, source: str) -> None:
    assert not list(wrong_imports(Path(path), ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "exec(x)",
        "import pickle",
        "from pickle import loads",
        "yaml.load(x)",
        "subprocess.run('x', shell=True)",
    ],
)
def test_unsafe_code_is_found(source: str) -> None:
    assert list(unsafe_code(Path("afa/x.py"), ast.parse(source)))


def test_rust_functions_are_measured() -> None:
    source = "impl X {\n    pub(crate) fn long(&self) {\n        if a {\n        }\n    }\n}\n\nconst fn short() {\n}\n"
    assert [lines for _, lines in rust_functions(Path("x.rs"), source)] == [4, 2]
