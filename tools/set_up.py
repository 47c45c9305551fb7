#!/usr/bin/env python3
"""Sets up the environment in `.venv`: Python packages, and the compiled modules.

    python3 tools/set_up.py demo|docs|test

`demo` installs what `make demo` needs; `test` also what tests, linters and benchmarks need, with
Debian packages where it may; `docs` what `make docs` needs, and compiles nothing.
Packages are downloaded while the modules compile; every step prints what it does. Nothing is done
twice: a second call compiles what has changed, if anything.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PROJECT_FILE = ROOT / "pyproject.toml"
EXTRAS = {"demo": ("demo",), "docs": ("docs",), "test": ("demo", "dev")}

MODULES_A_LINE = 10
SILENCE_S = 15
"""A step that prints nothing for so long is mentioned as still running."""

EXTRA = re.compile(r"cogwork\[([\w,]+)\]")
DOWNLOAD = re.compile(
    r"Downloading (?P<name>[\w.]+)-(?P<version>\d[\w.]*?)(?:-|\.tar).* \((?P<size>[\d.]+ MB)\)"
)
"""Downloads of less than a megabyte are not worth a line."""

TRANSLATION = re.compile(r"(\[\s*\d+/\d+\] )?Cythonizing ")
COMPILE = ["setup.py", "build_ext", "--inplace"]

_started_s = time.monotonic()
_print_lock = threading.Lock()


def say(text: str) -> None:
    """Print a line with the seconds since the start."""
    with _print_lock:
        print(f"[{time.monotonic() - _started_s:4.0f} s] {text}", flush=True)  # noqa: T201  # a program


def project_file() -> dict[str, Any]:
    """Return what `pyproject.toml` says."""
    import tomllib  # noqa: PLC0415  # older versions of Python lack it; check_tools() says so

    return tomllib.loads(PROJECT_FILE.read_text())


def requirements(extras: tuple[str, ...]) -> list[str]:
    """Return the requirements of the project with extras, without the project itself."""
    project = project_file()["project"]
    found: dict[str, None] = dict.fromkeys(project["dependencies"])
    waiting, seen = list(extras), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for requirement in project["optional-dependencies"][name]:
            own = EXTRA.fullmatch(requirement)
            if own:
                waiting += own[1].split(",")
            else:
                found[requirement] = None
    return list(found)


def run(what: str, command: list[str], notice: Callable[[str], str | None]) -> None:
    """Run a command and print what is notable in its output; exit where it fails.

    Args:
        what: What the step does, for its messages.
        command: A program and its arguments.
        notice: Returns what to print for a line of output, or None.
    """
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    done = threading.Event()
    last_s = [time.monotonic()]

    def remind() -> None:
        while not done.wait(1):
            if time.monotonic() - last_s[0] >= SILENCE_S:
                last_s[0] = time.monotonic()
                say(f"{what}: still running")

    threading.Thread(target=remind, daemon=True).start()
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        said = notice(line.strip())
        if said:
            last_s[0] = time.monotonic()
            say(f"{what}: {said}")
    done.set()
    if process.wait():
        say(f"{what}: failed with exit code {process.returncode}; its last lines:")
        with _print_lock:
            sys.stderr.write("".join(lines[-40:]))
        os._exit(1)


def notice_of_pip(line: str) -> str | None:
    """Return what to print for a line of pip's output: downloads, builds, the end."""
    download = DOWNLOAD.match(line)
    if download:
        return f"downloading {download['name']} {download['version']} ({download['size']})"
    if line.startswith("Building wheel for ") and line.endswith("started"):
        return f"building {line.split()[3]}"
    if line.startswith("Installing collected packages:"):
        return f"installing {line.count(',') + 1} packages"
    return None


class CompileProgress:
    """Counts the modules that a build translates to C and compiles."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._translated = 0
        self._compiled = 0

    def __call__(self, line: str) -> str | None:
        """Return what to print for a line of the build's output."""
        if TRANSLATION.match(line):
            self._translated += 1
            return self._each(self._translated, "translated to C")
        if line.startswith("building '"):
            self._compiled += 1
            return self._each(self._compiled, "compiled")
        return None

    def _each(self, count: int, what: str) -> str | None:
        is_told = count % MODULES_A_LINE == 0 or count == self._total
        return f"{count} of {self._total} modules {what}" if is_told else None


def pip(*arguments: str) -> list[str]:
    """Return a command that installs; bytecode is made when modules are first imported."""
    options = ["--disable-pip-version-check", "--no-compile", "--progress-bar", "off"]
    return [str(PYTHON), "-m", "pip", "install", *options, *arguments]


def compile_modules() -> None:
    """Compile the modules that have changed."""
    declarations = (ROOT / "src").rglob("*.pxd")
    total = sum(each.with_suffix(".py").exists() for each in declarations)
    run("data plane", [str(PYTHON), *COMPILE], CompileProgress(total))


def install_packages(kind: str) -> None:
    """Install Debian packages for tests, then the Python packages."""
    if kind == "test":
        run("Debian packages", [str(ROOT / "tools" / "test-packages")], lambda line: line)
    run("Python packages", pip(*requirements(EXTRAS[kind])), notice_of_pip)


def make_environment() -> None:
    """Make the virtual environment, if there is none."""
    if not PYTHON.exists():
        run("environment", [sys.executable, "-m", "venv", str(VENV)], lambda _: None)


def set_up_docs(digest: str) -> None:
    """Install what reads the sources and makes pages of them; it imports none of them."""
    if is_installed("docs", digest):
        return
    say("setting up .venv for `make docs`")
    make_environment()
    extras = project_file()["project"]["optional-dependencies"]
    run("Python packages", pip(*extras["docs"]), notice_of_pip)
    stamp_of("docs").write_text(digest)


def check_tools(kind: str) -> None:
    """Exit with a message where there is no compiler, or Python is too old."""
    if sys.version_info < (3, 11):  # noqa: UP036  # `make` takes whichever python3 is there
        sys.exit("cogwork: Python 3.11 or newer is needed; PYTHON=... names one")
    if kind != "docs" and not (shutil.which("gcc") or shutil.which("cc")):
        sys.exit("cogwork: a C compiler is needed (on Debian: apt-get install gcc)")


def stamp_of(kind: str) -> Path:
    """Return the file that says what was installed last."""
    return VENV / f".{kind}-stamp"


def is_installed(kind: str, digest: str) -> bool:
    """Say whether the packages of a kind are there; those of `test` hold all others."""
    stamps = {stamp_of("test"), stamp_of(kind)}
    return any(stamp.exists() and stamp.read_text() == digest for stamp in stamps)


def main() -> None:
    """Set up what the argument names."""
    if sys.argv[1:] not in (["demo"], ["docs"], ["test"]):
        sys.exit("usage: tools/set_up.py demo|docs|test")
    kind = sys.argv[1]
    check_tools(kind)
    digest = hashlib.sha256(PROJECT_FILE.read_bytes()).hexdigest()
    if kind == "docs":
        set_up_docs(digest)
        return
    if is_installed(kind, digest):
        compile_modules()
        return
    say(f"setting up .venv for `make {kind}`: compiling the data plane while packages download")
    make_environment()
    run("build tools", pip(*project_file()["build-system"]["requires"]), notice_of_pip)
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(compile_modules), pool.submit(install_packages, kind)]
        for job in jobs:
            job.result()
    os.environ["COGWORK_COMPILED"] = "1"  # for setup.py, which would compile them once more
    own = pip("--no-deps", "--no-build-isolation", "--editable", ".")
    run("cogwork", own, lambda _: None)
    stamp_of(kind).write_text(digest)
    say("ready")


if __name__ == "__main__":
    main()
