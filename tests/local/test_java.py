"""Which Java is taken, and what is said when none will do."""

import pytest

from arcfleet.local import JavaMissingError, LocalBroker
from arcfleet.local.java import find_java, find_keytool


@pytest.fixture
def fake_java(tmp_path, monkeypatch):
    """`fake_java(text)`: a JAVA_HOME whose java prints that as its version."""

    def make(text):
        java = tmp_path / "bin" / "java"
        java.parent.mkdir()
        java.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        return java

    return make


@pytest.mark.parametrize(
    "text", ['openjdk version "17.0.15" 2025-04-15', 'java version "21"', 'openjdk version "26-ea"']
)
def test_java_home_comes_first(fake_java, text):
    assert fake_java(text) == find_java()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11, Kafka 4 needs 17 or newer"),
        ('java version "1.8.0_292"', "is Java 8, Kafka 4 needs 17 or newer"),
        ("Unable to locate a Java Runtime.", "tells no version"),
    ],
)
def test_an_old_java_is_refused(fake_java, text, message):
    fake_java(text)
    with pytest.raises(JavaMissingError, match=message):
        find_java()


def test_a_java_that_does_not_run_is_refused(fake_java):
    fake_java("").write_bytes(b"\x7fELF, or so it says")
    with pytest.raises(JavaMissingError, match="does not run"):
        find_java()


def test_a_wrong_java_home_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaMissingError, match="no bin/java in it"):
        find_java()


def test_no_java_at_all_is_said_by_the_broker(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissingError, match="No java on the PATH"), LocalBroker():
        pass


def test_the_key_tool_belongs_to_the_java(fake_java):
    java = fake_java('openjdk version "17"')
    with pytest.raises(JavaMissingError, match="No keytool beside"):
        find_keytool()
    java.with_name("keytool").touch()
    assert find_keytool() == java.with_name("keytool")
