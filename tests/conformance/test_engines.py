"""Every engine passes the kit that foreign ones are held to."""

from pathlib import Path

from cogwork.engines.orb import OrbHost
from cogwork.engines.registry import engines
from cogwork.plugin.conformance.engines import EngineConformance
from cogwork.plugin.engine.contract import EngineHost

HERE = Path(__file__).parent


class TestOrb(EngineConformance):
    def make_host(self) -> EngineHost:
        return OrbHost()


def test_every_engine_that_is_installed_is_held_to_the_kit() -> None:
    others = [name for name in engines() if name != "orb"]
    assert [name for name in others if not (HERE / f"test_engines_{name}.py").exists()] == []
