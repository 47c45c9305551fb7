"""Tutorials, and the pages for users of other brokers, do what they say, block by block."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tutorials import Tutorial, blocks_of, matches

from cogwork.bench.servers.process import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable

PAGES = Path(__file__).parents[2] / "docs"
TUTORIALS = sorted(
    str(path.relative_to(PAGES))
    for folder in ("tutorials", "coming-from")
    for path in (PAGES / folder).glob("[a-z]*.md")
)


@pytest.mark.timeout(600)  # Spark starts twice
@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_runs(name: str, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with Tutorial(PAGES / name, tmp_path, port) as tutorial:
        tutorial.run()


@pytest.mark.parametrize("name", TUTORIALS)
def test_every_program_of_a_tutorial_has_a_name(name: str) -> None:
    """Else it would not be run; a fragment of a configuration may be shown alone."""
    blocks = blocks_of(PAGES / name)
    assert [each.line for each in blocks if each.language == "python" and not each.title] == []
    assert {each.language for each in blocks} <= {"sh", "text", "python", "ini"}


def run_page(text: str, folder: Path) -> Callable[[], None]:
    page = folder / "page.md"
    page.write_text(text)

    def run() -> None:
        with Tutorial(page, folder, 1) as tutorial:
            tutorial.run()

    return run


def test_a_page_that_shows_something_else_is_found(tmp_path: Path) -> None:
    run_page("```sh\necho a b\n```\n\n```text\na…\n```\n", tmp_path)()
    with pytest.raises(AssertionError, match="line 5"):
        run_page("```sh\necho a b\n```\n\n```text\nb\n```\n", tmp_path)()
    with pytest.raises(AssertionError, match="exit code 3"):
        run_page("```sh\nexit 3\n```\n", tmp_path)()
    with pytest.raises(AssertionError, match="it ended"):
        run_page(
            '```sh title="Terminal 1"\ntrue\n```\n```text title="Terminal 1"\nready\n```\n',
            tmp_path,
        )()


def test_an_ellipsis_stands_for_anything() -> None:
    assert matches("a…c", "a b\nc")
    assert not matches("a…c", "a b")
    assert matches("b", "a b c", whole=False)
