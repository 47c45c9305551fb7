"""Every engine passes the kit that foreign ones are held to."""

from pathlib import Path

from cogwork.consensus.conformance import EngineConformance
from cogwork.consensus.engine import EngineHost
from cogwork.consensus.orb import OrbHost
from cogwork.consensus.registry import engines

HERE = Path(__file__).parent


class TestOrb(EngineConformance):
    def make_host(self) -> EngineHost:
        return OrbHost()


def test_every_engine_that_is_installed_is_held_to_the_kit() -> None:
    others = [name for name in engines() if name != "orb"]
    assert [name for name in others if not (HERE / f"test_engines_{name}.py").exists()] == []
