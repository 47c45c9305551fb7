"""The runner behind `make sim`."""

from __future__ import annotations

import pytest

from cogwork.sim.__main__ import main, scenario_of
from cogwork.sim.checkers import Broken
from cogwork.sim.scenario import Scenario


def test_it_tells_what_it_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5", "--count", "2", "--containers", "3", "--shape", "ring"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "sim: 2 scenarios from seed 5 on"
    assert told[1].startswith("sim: 1/2 seed 5: 3 in a ring, ")
    assert told[2].startswith("sim: 2/2 seed 6: 3 in a ring, ")
    assert told[3] == "sim: 2 scenarios, 0 failed"


def test_a_failure_names_the_command_that_tells_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(scenario: Scenario, chapters: int) -> None:
        raise Broken(scenario.world, "the sky is green")

    monkeypatch.setattr(Scenario, "run", run)
    assert main(["--seed", "5", "--count", "1", "--containers", "3", "--shape", "ring"]) == 1
    told = capsys.readouterr().out
    assert "the sky is green" in told
    assert "python -m cogwork.sim --seed 5 --count 1 --containers 3 --shape ring" in told


def test_a_seed_says_size_and_shape() -> None:
    scenarios = [scenario_of(seed)[0] for seed in range(20)]
    sizes = [len(scenario.world.hosts) for scenario in scenarios]
    assert sizes == [len(scenario_of(seed)[0].world.hosts) for seed in range(20)]
    assert len(set(sizes)) > 5
    assert len({scenario.shape for scenario in scenarios}) > 3


def test_what_a_container_takes_ill_is_told_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario(5, 3, "ring")

    def settle() -> None:
        raise AssertionError("what goes is what was told")

    monkeypatch.setattr(scenario, "_settle", settle)
    with pytest.raises(Broken, match=r"seed 5, .* ring: what goes is what was told"):
        scenario.run(1)
