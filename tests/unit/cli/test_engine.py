"""`cogwork engine list` and `cogwork bench engines`, and the page that tells what is declared."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import click
import pytest

from cogwork.bench.measured import load, save
from cogwork.bench.streams import Figures, measure
from cogwork.cli.commands import bench_engines
from cogwork.cli.commands.engine import ABILITIES, declared
from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.main import main
from cogwork.engines.orb import OrbHost
from cogwork.engines.registry import factory_of
from cogwork.plugins import PluginError

PAGE = Path(__file__).parents[3] / "docs" / "engines.md"
ENGINES = ("orb", "raft", "redis", "etcd", "nats", "kafka")
BEGIN, END = "<!-- declared: begin -->\n", "<!-- declared: end -->"
FIGURES = Figures(
    engine="orb",
    servers=0,
    durability="memory",
    single_per_s=1.0,
    batched_per_s=2.0,
    p50_ms=3.0,
    p99_ms=4.0,
    replay_per_s=5.0,
)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    return int(stopped.value.code or 0)


def table() -> str:
    """Write the page's table from what the engines declare."""
    lines = [
        f"| engine | durability | {' | '.join(ABILITIES.values())} |",
        "|---" * (len(ABILITIES) + 2) + "|",
    ]
    for name in ENGINES:
        try:
            found = declared(name)
        except PluginError as missing:
            pytest.skip(str(missing))
        cells = ["yes" if getattr(found, each) else "no" for each in ABILITIES]
        lines.append(f"| {name} | {found.durability.value} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_the_page_says_what_the_engines_declare() -> None:
    page = PAGE.read_text()
    assert page.partition(BEGIN)[2].partition(END)[0] == table()


def test_every_option_is_on_the_page() -> None:
    page = PAGE.read_text()
    for name in ("redis", "etcd", "nats", "kafka"):
        host = factory_of(name)
        options = (*host.host_options, *host.stream_options)  # type: ignore[union-attr]  # these have options
        assert [each for each in options if not re.search(rf"`{each}\b", page)] == []


def test_the_list_has_what_is_declared_and_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "state" / "engines.json"
    save(file, {"orb/0": FIGURES})
    assert run("engine", "list", "--json", "--file", str(file)) == 0
    listed = {each["engine"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed["orb"]["installed"]
    assert listed["orb"]["durability"] == "memory"
    assert listed["orb"]["measured"][0]["batched_per_s"] == 2.0
    assert run("engine", "list", "--file", str(file)) == 0
    assert "batched/s" in capsys.readouterr().out


def test_an_engine_that_is_not_installed_says_which_extra_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def missing(_name: str) -> None:
        raise PluginError("engine 'etcd'", "needs aiohttp, which is missing: cogwork[etcd] has it")

    monkeypatch.setattr("cogwork.cli.commands.engine.declared", missing)
    file = tmp_path / "engines.json"
    save(file, {"orb/0": FIGURES})
    assert run("engine", "list", "--file", str(file)) == 0
    assert "cogwork[etcd] has it" in capsys.readouterr().out


def test_figures_of_other_engines_stay(tmp_path: Path) -> None:
    file = tmp_path / "engines.json"
    save(file, {"orb/0": FIGURES})
    save(file, {"etcd/3": Figures(**{**_fields(FIGURES), "engine": "etcd", "servers": 3})})
    assert set(load(file)) == {"orb/0", "etcd/3"}
    file.write_text("nonsense")
    with pytest.raises(click.ClickException, match="bench engines"):
        load(file)


def _fields(figures: Figures) -> dict[str, Any]:
    return {name: getattr(figures, name) for name in figures.__struct_fields__}


@pytest.mark.parametrize("said", ["", "{nope", '{"type": "object"}'])
def test_a_file_of_something_else_is_one_line(
    said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "other.json"
    file.write_text(said)
    assert run("engine", "list", "--file", str(file)) == ExitCode.ERROR
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"cogwork: {file} is not what `cogwork bench engines` writes: ")
    assert shown.err.count("\n") == 1


def test_the_bench_measures_an_engine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "engines.json"
    words = ("--engine", "orb", "--seconds", "0.1", "--file", str(file), "--json")
    assert run("bench", "engines", *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["engine"] == "orb"
    assert found["batched_per_s"] > 0
    assert list(load(file)) == ["orb/0"]


@pytest.mark.parametrize("place", ["other.json", ".", "other.json/engines.json"])
def test_a_file_that_cannot_be_had_is_told_before_anything_is_measured(
    place: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "other.json").write_text("something else")
    monkeypatch.setattr(bench_engines, "_measure", pytest.fail)
    words = ("--engine", "orb", "--file", str(tmp_path / place))
    assert run("bench", "engines", *words) == ExitCode.ERROR
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert str(tmp_path) in shown.err


def test_each_case_is_measured_once_at_least() -> None:
    figures = asyncio.run(measure("orb", OrbHost(), 0, {}, 0.0))
    assert figures.single_per_s > 0
    assert figures.batched_per_s > 0
    assert figures.p50_ms > 0


def test_an_engine_that_cannot_be_measured_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "engines.json"
    nowhere = ("--server", "redis=redis://127.0.0.1:1/0")
    words = ("--engine", "orb", "--engine", "redis", *nowhere, "--seconds", "0.1", "--json")
    assert run("bench", "engines", *words, "--file", str(file)) == ExitCode.ERROR
    shown = capsys.readouterr()
    measured, missed = map(json.loads, shown.out.splitlines())
    assert measured["engine"] == "orb"
    assert (missed["engine"], missed["servers"]) == ("redis", 1)
    assert missed["problem"]
    assert shown.err == f"cogwork: redis: not measured: {missed['problem']}\n"
    assert list(load(file)) == ["orb/0"]


def test_an_engine_that_is_not_to_be_had_is_an_error_where_it_was_asked_for(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    monkeypatch.setattr("cogwork.cli.commands.bench_engines.MEASURED", ("orb", "kafka"))
    words = ("bench", "engines", "--seconds", "0.1", "--file", str(tmp_path / "engines.json"))
    assert run(*words) == 0
    assert "cogwork: kafka: not measured: " in capsys.readouterr().err
    assert run(*words, "--engine", "kafka") == ExitCode.ERROR


def test_a_place_that_is_none_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("bench", "engines", "--server", "redis") == 2
    assert "redis=redis://localhost:6379/0" in capsys.readouterr().err
