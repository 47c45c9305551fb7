from cogwork.dataplane.terminus import Terminus

SOURCE_HASH: str

class Fanouts(Terminus): ...
