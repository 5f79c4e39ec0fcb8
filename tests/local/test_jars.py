"""The jars in the cache: fetched, verified, repaired. Maven is played by a small script, but for the last two tests."""

import hashlib
import os
import subprocess
import sys
import time

import pytest

from arcfleet.local import DownloadError, JavaMissingError, MavenMissingError
from arcfleet.local.jar_cache import KAFKA, JarSet, cache_dir, ensure
from arcfleet.local.java import find_java

CONTENTS = {"a.jar": b"first", "b.jar": b"second"}
HASHES = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}
SMALL = JarSet("small", "1", "<project/>", HASHES, downloads=2)

# Copies jars as Maven does. What it does wrong, if anything, is in the file `mood`; each run leaves a line in `runs`.
MAVEN = f"""#!{sys.executable}
import pathlib, sys, time
here = pathlib.Path(__file__).parent
options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("-D"))
repository, target = (pathlib.Path(options[name]) for name in ("maven.repo.local", "outputDirectory"))
with (here / "runs").open("a") as runs:
    print("run", file=runs)
mood = (here / "mood").read_text()
if mood == "unreachable":
    sys.exit("[ERROR] Could not transfer artifact x from/to central: Connection refused")
if mood == "slow":
    time.sleep(1)
damaged = (repository / "damaged").exists()
if mood == "fails" or (damaged and mood == "fails on damage"):
    sys.exit("[ERROR] Plugin x could not be loaded: zip END header not found")
repository.mkdir(parents=True, exist_ok=True)
target.mkdir(parents=True)
for name, content in {CONTENTS!r}.items():
    (target / name).write_bytes(b"rubbish" if damaged or mood == "rubbish" else content)
    print(f"[INFO] Downloaded from central: somewhere/{{name}} (1 kB)")
"""


class Maven:
    def __init__(self, folder, cache):
        self.folder, self.repository = folder, cache / "maven"
        (folder / "mvn").write_text(MAVEN)
        (folder / "mvn").chmod(0o755)
        (folder / "runs").touch()
        self.becomes("well")

    def becomes(self, mood):
        (self.folder / "mood").write_text(mood)

    @property
    def runs(self):
        return len((self.folder / "runs").read_text().splitlines())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCFLEET_CACHE", str(tmp_path / "cache"))
    return cache_dir()


@pytest.fixture
def maven(tmp_path, monkeypatch, cache):
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return Maven(folder, cache)


@pytest.fixture
def libs(maven, cache):
    """The jars, as fetched."""
    ensure(SMALL)
    return SMALL.folder(cache)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.jar")}


def test_jars_are_fetched_once(maven, cache):
    counted = []
    for _ in range(2):
        paths = ensure(SMALL, count=lambda done, total: counted.append((done, total)))
        assert paths == [cache / "small" / "1" / "libs" / name for name in CONTENTS]
    assert contents(paths[0].parent) == CONTENTS
    assert maven.runs == 1
    assert counted == [(1, 2), (2, 2)]


def damage_same_size(libs):
    (libs / "a.jar").write_bytes(b"wrong")


def add_a_stranger(libs):
    (libs / "c.jar").write_bytes(b"")
    (libs / "verified").unlink()


@pytest.mark.parametrize(
    "damage",
    [
        damage_same_size,
        add_a_stranger,
        lambda libs: (libs / "b.jar").unlink(),
        lambda libs: (libs / "b.jar").write_bytes(b""),
    ],
)
def test_damage_is_found_and_repaired(maven, libs, damage):
    damage(libs)
    said = []
    ensure(SMALL, say=said.append)
    assert contents(libs) == CONTENTS
    assert maven.runs == 2
    assert "missing or damaged" in said[0]
    assert [path.name for path in libs.parent.iterdir()] == ["libs"]


@pytest.mark.parametrize(
    "touch", [lambda libs: (libs / "verified").unlink(), lambda libs: os.utime(libs / "a.jar", (1, 1))]
)
def test_without_a_valid_stamp_everything_is_hashed_but_not_fetched(maven, libs, touch):
    touch(libs)
    ensure(SMALL)
    assert maven.runs == 1
    assert (libs / "verified").exists()


def test_another_list_makes_the_stamp_worthless(maven, libs):
    other = JarSet("small", "1", "<project/>", {"a.jar": HASHES["a.jar"], "b.jar": HASHES["a.jar"]}, downloads=2)
    with pytest.raises(DownloadError, match=r"other jars than the listed ones: b\.jar"):
        ensure(other)
    assert contents(libs) == CONTENTS  # what cannot be made better is left alone


@pytest.mark.parametrize("mood", ["well", "fails on damage"])
def test_a_damaged_maven_repository_is_emptied(maven, cache, mood):
    maven.repository.mkdir(parents=True)
    (maven.repository / "damaged").touch()
    maven.becomes(mood)
    assert contents(ensure(SMALL)[0].parent) == CONTENTS
    assert maven.runs == 2
    assert not (maven.repository / "damaged").exists()


@pytest.mark.parametrize(
    ("mood", "message", "runs"),
    [
        ("rubbish", r"other jars than the listed ones: a\.jar, b\.jar", 2),
        ("fails", r"Maven failed \(exit 1\):\nPlugin x could not be loaded", 1),
        ("unreachable", r"could not reach its registry:\n.*Connection refused\nCheck the network", 1),
    ],
)
def test_a_failure_is_explained_and_leaves_nothing_behind(maven, cache, mood, message, runs):
    maven.becomes(mood)
    with pytest.raises(DownloadError, match=message):
        ensure(SMALL)
    assert maven.runs == runs
    assert list((cache / "small" / "1").iterdir()) == []


def test_leftovers_of_a_killed_process_are_removed(maven, cache):
    leftover = cache / "small" / "1" / "part-killed" / "libs"
    leftover.mkdir(parents=True)
    ensure(SMALL)
    assert [path.name for path in (cache / "small" / "1").iterdir()] == ["libs"]


def test_two_processes_fetch_once(maven):
    maven.becomes("slow")
    program = f"from arcfleet.local.jar_cache import JarSet, ensure; ensure({SMALL!r}, say=print)"
    command = [sys.executable, "-P", "-c", program]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=30)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert maven.runs == 1
    assert sorted(said) == [
        "another process is fetching jars: waiting for it\n",
        "fetching 2 jars of small 1 with Maven\n",
    ]


def test_a_missing_java_or_maven_is_said(cache, monkeypatch, tmp_path):
    (tmp_path / "java").symlink_to(find_java())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MavenMissingError, match="Install Maven"):
        ensure(SMALL)
    (tmp_path / "java").unlink()
    with pytest.raises(JavaMissingError, match="Install Java"):
        ensure(SMALL)


def test_a_cache_that_cannot_be_used_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ARCFLEET_CACHE", str(tmp_path / "file"))
    with pytest.raises(DownloadError, match="Set ARCFLEET_CACHE to another folder"):
        ensure(SMALL)


def run_module():
    return subprocess.run(
        [sys.executable, "-P", "-m", "arcfleet.local.jars"], capture_output=True, text=True, check=False
    )


def test_the_command_exits_with_3_when_it_cannot(maven):
    maven.becomes("unreachable")
    answer = run_module()
    assert (answer.returncode, answer.stdout) == (3, "")
    assert "error: Maven could not reach its registry" in answer.stderr


def test_the_command_is_quick_when_all_is_there():
    ensure()
    start_s = time.monotonic()
    answer = run_module()
    assert (answer.returncode, answer.stdout) == (0, "")
    assert answer.stderr.startswith(f"Kafka {KAFKA.version}: {len(KAFKA.hashes)} jars in ")
    assert time.monotonic() - start_s < 10


def test_the_real_jars_are_those_of_the_list_and_the_list_is_that_of_the_pom():
    for path in ensure():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == KAFKA.hashes[path.name]
    assert f"<version>{KAFKA.version}</version>" in KAFKA.pom
    assert f"kafka_2.13-{KAFKA.version}.jar" in KAFKA.hashes
