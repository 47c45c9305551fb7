"""The trie comes twice: as built, and from its source, which must run as it is."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from cogwork.router import topics

SOURCE = Path(topics.__file__).parent / "topics.py"


def source_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("topics_from_source", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=[topics, source_module()], ids=["built", "source"])
def topics_module(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


@pytest.fixture
def colliding_trie() -> topics.TopicTrie:
    """A trie in which all words have the same digest and all branches the same salt."""
    module = source_module()
    vars(module).update(_FNV_PRIME=0, _GOLDEN=0)
    built: topics.TopicTrie = module.TopicTrie()
    return built


@pytest.fixture
def trie(topics_module: ModuleType) -> topics.TopicTrie:
    built: topics.TopicTrie = topics_module.TopicTrie()
    return built
