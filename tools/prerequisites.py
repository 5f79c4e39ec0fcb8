"""Checks what set-up needs from the machine, and names everything that is missing and how to get it.

It runs before .venv exists, on whatever `python3` is: standard library only, and syntax that an old Python reads too.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
JAVA_AT_LEAST = (17,)

HINTS = {
    "python": "Debian: apt install python3 python3-venv; Fedora: dnf install python3; macOS: brew install python; "
    "if it has another name than python3: make PYTHON=python3.12 setup",
    "venv": "Debian: apt install python3-venv; elsewhere it is part of Python",
    "rust": "Get rustup (Debian: apt install rustup; Fedora: dnf install rustup; macOS: brew install rustup), "
    "then: rustup default stable",
    "java": "Debian: apt install openjdk-17-jdk-headless; Fedora: dnf install java-21-openjdk-headless; "
    "macOS: brew install openjdk",
    "maven": "Debian: apt install maven; Fedora: dnf install maven; macOS: brew install maven",
    "c": "Debian: apt install gcc libc6-dev; Fedora: dnf install gcc; macOS: xcode-select --install",
}


def required(file, key):
    """The lowest version that a manifest asks for: the manifests are the only place that says so."""
    with open(os.path.join(ROOT, file)) as manifest:
        found = re.search(r'^%s = "(?:>=)?([0-9.]+)"' % key, manifest.read(), re.M)
    return tuple(int(part) for part in found.group(1).split("."))


def output(*command):
    """What a command prints on both streams, or None if there is none of that name."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return process.communicate()[0].decode("utf-8", "replace")
    except OSError:
        return None


def version(text, pattern):
    """The first version number after `pattern`, or None: what only stands in for a tool prints a notice without one."""
    found = re.search(pattern + r"[^0-9\n]*([0-9]+(?:\.[0-9]+)*)", text or "")
    return tuple(int(part) for part in found.group(1).split(".")) if found else None


def dotted(numbers):
    return ".".join(str(number) for number in numbers)


def has_venv():
    try:
        import ensurepip  # noqa: F401  # Debian keeps it in a package of its own
        import venv  # noqa: F401
    except ImportError:
        return False
    return True


def java():
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else "java"


def problem(name, found, at_least, hint):
    """A line if `found` is missing or too old, else None."""
    if found is None:
        return "%s %s or later is missing. %s" % (name, dotted(at_least), HINTS[hint])
    if found < at_least:
        return "%s is %s, but %s or later is needed. %s" % (name, dotted(found), dotted(at_least), HINTS[hint])
    return None


def problems():
    python_at_least = required("pyproject.toml", "requires-python")
    rust_at_least = required("Cargo.toml", "rust-version")
    lines = [problem("Python", tuple(sys.version_info[:3]), python_at_least, "python")]
    if not has_venv():
        lines.append("Python's venv module is missing. " + HINTS["venv"])
    rust = [version(output(tool, "--version"), tool) for tool in ("cargo", "rustc")]
    lines.append(problem("Rust (cargo and rustc)", None if None in rust else min(rust), rust_at_least, "rust"))
    lines.append(problem("Java", version(output(java(), "-version"), "version"), JAVA_AT_LEAST, "java"))
    if output("mvn", "--version") is None:  # without Java it prints no version
        lines.append("Maven (mvn) is missing. " + HINTS["maven"])
    if version(output(os.environ.get("CC", "cc"), "--version"), "") is None:
        lines.append("A C compiler (cc) is missing: Rust links with it. " + HINTS["c"])
    return [line for line in lines if line]


def main():
    missing = problems()
    if missing:
        sys.stderr.write("Arcfleet cannot be set up on this machine yet:\n")
        for line in missing:
            sys.stderr.write("  - %s\n" % line)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
