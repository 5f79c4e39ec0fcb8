"""The package as it is installed, from a wheel or in place."""

import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

from afa.engine import native_profile, native_version

ROOT = Path(__file__).parent.parent


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_one_version_everywhere() -> None:
    version = metadata.version("arcfleet")
    assert native_version() == version
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == version


def test_the_native_part_is_optimised() -> None:
    assert native_profile() == "release"


def test_the_contracts_are_in_the_package() -> None:
    with resources.as_file(resources.files("afa") / "schemas") as installed:
        assert files(installed) == files(ROOT / "schemas")


def test_the_stub_says_what_the_native_module_has(tmp_path: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-P", "-m", "mypy.stubtest", "afa._native"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
