"""The jars of a pom, verified, in the cache.

The jars live in `$ARCFLEET_CACHE/<name>/<version>/libs` beside a stamp that is written when every jar had the hash of
the committed list. With the stamp in place a look costs one `stat` per jar; without it, or when a jar's size or time is
not the stamped one, all are hashed again; when one is missing or wrong, the set is fetched anew and swapped in by a
rename. Maven's own repository is in the cache too. The whole cache may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from arcfleet.local.errors import DownloadError
from arcfleet.local.java import find_java
from arcfleet.local.maven import MavenFailedError, copy_dependencies

_HERE = Path(__file__).parent
_STAMP = "verified"
_PART = "part-"

Talk = Callable[[str], None]
Count = Callable[[int, int], None]  # how many files have come, of how many


@dataclass(frozen=True)
class JarSet:
    """Jars that belong together, and how to get them."""

    name: str
    version: str
    pom: str  # what Maven is asked for
    hashes: Mapping[str, str]  # what it must bring: SHA-256 by file name, in the order of the class path
    downloads: int  # files that Maven loads for it into an empty repository, poms and plugins too: for the progress bar

    @classmethod
    def committed(cls, name: str, version: str, downloads: int) -> JarSet:
        """Reads `<name>.pom.xml` and `<name>.sha256`, which lie beside this file."""
        pom = (_HERE / f"{name}.pom.xml").read_text(encoding="utf-8")
        lines = (_HERE / f"{name}.sha256").read_text(encoding="utf-8").splitlines()
        hashes = {file: digest for digest, file in (line.split() for line in lines)}
        return cls(name, version, pom, hashes, downloads)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self.hashes).encode()).hexdigest()

    def folder(self, cache: Path) -> Path:
        return cache / self.name / self.version / "libs"


KAFKA = JarSet.committed("kafka", "4.3.1", downloads=350)


def cache_dir() -> Path:
    """Where everything goes that is downloaded or built: `$ARCFLEET_CACHE`, else `~/.cache/arcfleet`."""
    named = os.environ.get("ARCFLEET_CACHE", "")
    return Path(named).expanduser().absolute() if named else Path.home() / ".cache" / "arcfleet"


def ensure(
    jars: JarSet = KAFKA, *, say: Talk = lambda _: None, count: Count = lambda _done, _total: None
) -> list[Path]:
    """The paths of all jars, verified; fetches or repairs them first if need be, and then blocks, as it does while
    another process does so. Raises JavaMissingError, MavenMissingError or DownloadError."""
    cache = cache_dir()
    folder = jars.folder(cache)
    if not _is_stamped(jars, folder):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _locked(cache / "maven.lock", say):
                _repair(jars, cache, say, count)
        except OSError as error:
            raise DownloadError(
                f"The cache {cache} cannot be used: {error}. Set ARCFLEET_CACHE to another folder."
            ) from error
    return [folder / name for name in jars.hashes]


def _repair(jars: JarSet, cache: Path, say: Talk, count: Count) -> None:
    folder = jars.folder(cache)
    if _is_stamped(jars, folder):  # somebody else did it while we waited for the lock
        return
    if folder.is_dir():
        wrong = _wrong(jars, folder)
        if not wrong:
            _stamp(jars, folder)
            return
        say(f"missing or damaged in {folder}: {', '.join(wrong)}")
    find_java()  # Maven needs it too, and says so less clearly
    say(f"fetching {len(jars.hashes)} jars of {jars.name} {jars.version} with Maven")
    for leftover in folder.parent.glob(f"{_PART}*"):
        shutil.rmtree(leftover)
    work = Path(tempfile.mkdtemp(prefix=_PART, dir=folder.parent))
    try:
        _fetch(jars, cache / "maven", work, say, count)
        _stamp(jars, work / "libs")
        if folder.exists():
            folder.rename(work / "damaged")
        (work / "libs").rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _fetch(jars: JarSet, repository: Path, work: Path, say: Talk, count: Count) -> None:
    """Fills `work/libs` with the right jars. A Maven repository that is damaged too is replaced by a new one."""
    wrong = _copy(jars, repository, work, count)
    if wrong:
        say(f"Maven's repository {repository} seems to be damaged ({wrong[0]}): trying with an empty one")
        shutil.rmtree(work / "libs", ignore_errors=True)
        wrong = _copy(jars, work / "maven", work, count)
        if not wrong:
            repository.rename(work / "damaged-maven")
            (work / "maven").rename(repository)
    if wrong:
        raise DownloadError(
            f"Maven brought other jars than the listed ones: {', '.join(wrong)}. A mirror may hand out something else: "
            "check the mirrors in Maven's settings.xml."
        )


def _copy(jars: JarSet, repository: Path, work: Path, count: Count) -> list[str]:
    """One attempt; returns what is wrong with the result. With an empty repository a failure is raised."""
    done = 0

    def on_file() -> None:
        nonlocal done
        done += 1
        count(done, max(done, jars.downloads))

    pom = work / "pom.xml"
    pom.write_text(jars.pom, encoding="utf-8")
    may_be_damaged = repository.exists()
    try:
        copy_dependencies(pom, repository, work / "libs", on_file)
    except MavenFailedError as error:
        if may_be_damaged:
            return [str(error).splitlines()[-1]]
        raise
    return _wrong(jars, work / "libs")


def _wrong(jars: JarSet, folder: Path) -> list[str]:
    """Names that are missing, have another hash, or should not be there."""
    wrong = [name for name, digest in jars.hashes.items() if _sha256(folder / name) != digest]
    return wrong + sorted(path.name for path in folder.glob("*.jar") if path.name not in jars.hashes)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _stamp_text(jars: JarSet, folder: Path) -> str:
    lines = [jars.fingerprint]
    for name in jars.hashes:
        stat = (folder / name).stat()
        lines.append(f"{stat.st_size} {stat.st_mtime_ns} {name}")
    return "\n".join(lines) + "\n"


def _stamp(jars: JarSet, folder: Path) -> None:
    text = _stamp_text(jars, folder)
    part = folder / f"{_STAMP}.{os.getpid()}"
    part.write_text(text, encoding="utf-8")
    part.replace(folder / _STAMP)


def _is_stamped(jars: JarSet, folder: Path) -> bool:
    try:
        return (folder / _STAMP).read_text(encoding="utf-8") == _stamp_text(jars, folder)
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return False


@contextlib.contextmanager
def _locked(path: Path, say: Talk) -> Iterator[None]:
    """The kernel drops the lock with its holder, so a killed process never leaves one behind."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is fetching jars: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
