"""Short scenarios of a raft group; `make sim` runs a hundred thousand.

`COGWORK_SEED=… pytest tests/sim` replays the last of these.
"""

from __future__ import annotations

import os
import random
import sys

import pytest
from replay import told_by_each

from cogwork.sim.raft.runner import main, run_seeds
from cogwork.sim.raft.scenario import Scenario
from cogwork.sim.raft.scenes import KINDS, SCENES

FEW = 30


@pytest.mark.parametrize("scene", [scene.name for scene in SCENES])
def test_every_sort_of_scenario_ends_well(scene: str) -> None:
    figures = run_seeds(0, FEW, scene)
    assert figures.failures == {}
    assert figures.seeds == FEW
    assert figures.steps > 100 * FEW


def test_new_scenarios_end_well() -> None:
    seed = int(os.environ.get("COGWORK_SEED", str(random.SystemRandom().randrange(2**32))))
    sys.stdout.write(f"COGWORK_SEED={seed}\n")
    assert run_seeds(seed, FEW).failures == {}


def test_a_replica_applies_what_it_has_while_it_accepts_a_leader_s_snapshot() -> None:
    """It makes none of its own of that: the group has given these entries up."""
    assert run_seeds(737246356, 1).failures == {}


def test_scenarios_have_every_kind_of_disturbance_and_both_ways_to_run() -> None:
    scenarios = [Scenario(seed) for seed in range(200)]
    for scenario in scenarios[: 2 * FEW]:
        scenario.run()
    seen = {kind for scenario in scenarios[: 2 * FEW] for kind in scenario.counts}
    assert set(KINDS) <= seen
    assert {scenario.world.is_hosted for scenario in scenarios} == {True, False}
    assert {scenario.scene.name for scenario in scenarios} == {scene.name for scene in SCENES}


def test_a_scenario_really_goes_through_what_it_is_about() -> None:
    """Terms, commits, snapshots from others, lost replicas and changed members: all come up."""
    snapshots = lost = members = terms = commits = 0
    for seed in range(80):
        scenario = Scenario(seed)
        scenario.run()
        checker = scenario.world.checker
        snapshots += len(checker.snapshots)
        lost += len(scenario.world.lost)
        members += len(scenario.world.disks) > len(checker.quorums[0])
        terms = max(terms, checker.last_term)
        commits = max(commits, checker.commit)
    assert snapshots > 30
    assert lost > 0
    assert members > 5
    assert terms > 3
    assert commits > 20


TOLD_ELSEWHERE = """
from cogwork.sim.raft.scenario import Scenario
for seed in (3, 4, 5):
    lines = []
    Scenario(seed, tell=lines.append).run()
    print("\\n".join(lines))
"""


def test_a_seed_gives_the_same_scenario_whatever_the_order_of_sets() -> None:
    told = told_by_each(TOLD_ELSEWHERE)
    assert len(told) == 1
    assert b"leader" in told.pop()


def test_the_runner_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5", "--seeds", "3", "--jobs", "1"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "sim: 3 scenarios of a raft group from seed 5 on, 1 processes"
    assert told[1].startswith("sim: 3 scenarios, 0 failed; ")


def test_a_failure_names_its_seed_and_is_told_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def why(_world: object) -> str:
        return "the sky is green"

    monkeypatch.setattr("cogwork.sim.raft.world.World.why", why)
    assert main(["--seed", "5", "--seeds", "1", "--jobs", "1"]) == 1
    told = capsys.readouterr().out
    assert "FAILED seed 5: Broken: at " in told
    assert "it has not converged after 12.0 s: the sky is green" in told
    assert "again: python -m cogwork.sim raft --seed 5 --trace" in told
    assert main(["--seed", "5", "--trace"]) == 1
    traced = capsys.readouterr().out
    assert " follower:0 0/0/0 " in traced
    assert "the sky is green" in traced.splitlines()[-1]
