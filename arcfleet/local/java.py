"""Finds the Java that runs Kafka."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from arcfleet.local.errors import JavaMissingError

JAVA_VERSION_MIN = 17  # Kafka 4 brokers are compiled for Java 17
_VERSION_TIMEOUT_S = 30.0
_HOW_TO = (
    f"Install Java {JAVA_VERSION_MIN} or newer (Debian: apt-get install openjdk-17-jdk-headless; macOS: brew install "
    "openjdk) and put it on the PATH, or point JAVA_HOME to it."
)


def find_java() -> Path:
    """The `java` of JAVA_HOME, else of the PATH; raises JavaMissingError if there is none or it is older than 17."""
    home = os.environ.get("JAVA_HOME", "")
    if home:
        java = Path(home, "bin", "java")
        if not java.is_file():
            raise JavaMissingError(f"JAVA_HOME is {home}, but there is no bin/java in it. {_HOW_TO}")
    else:
        found = shutil.which("java")
        if found is None:
            raise JavaMissingError(f"No java on the PATH and JAVA_HOME is not set. {_HOW_TO}")
        java = Path(found)
    version = _major_version(java)
    if version < JAVA_VERSION_MIN:
        raise JavaMissingError(f"{java} is Java {version}, Kafka 4 needs {JAVA_VERSION_MIN} or newer. {_HOW_TO}")
    return java


def find_keytool() -> Path:
    """The key tool of the same Java; every runtime carries one."""
    java = find_java()
    for keytool in (java.with_name("keytool"), java.resolve().with_name("keytool")):
        if keytool.is_file():
            return keytool
    raise JavaMissingError(f"No keytool beside {java}. {_HOW_TO}")


@functools.cache
def _major_version(java: Path) -> int:
    try:
        # The path is JAVA_HOME's or the PATH's own java.
        answer = subprocess.run(  # noqa: S603
            [java, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissingError(f"{java} does not run: {error}. {_HOW_TO}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if found is None:
        raise JavaMissingError(f"{java} -version (exit {answer.returncode}) tells no version. {_HOW_TO}")
    return int(found[1])
