"""Every engine passes the kit that foreign ones are held to."""

from cogwork.consensus.conformance import EngineConformance
from cogwork.consensus.engine import EngineHost
from cogwork.consensus.orb import OrbHost


class TestOrb(EngineConformance):
    def make_host(self) -> EngineHost:
        return OrbHost()
