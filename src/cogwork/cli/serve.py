"""`cogwork serve`: a container in the foreground."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cogwork.container.config import defaults, load, with_options
from cogwork.container.container import Container
from cogwork.container.service import Service
from cogwork.io.loop import EventLoop

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.settings import Configuration

__all__ = ("serve",)

CONFIG_PATH = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--id", "container_id", metavar="NAME", help="The container's id.")
@click.option("--listen", multiple=True, metavar="HOST:PORT", help="Where to listen; repeatable.")
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="HOST:PORT",
    help="A container to link with; repeatable.",
)
@click.option("--config", type=CONFIG_PATH, metavar="FILE", help="The configuration, in TOML.")
@click.option("--data", "data_dir", metavar="DIR", help="Where to keep files.")
@click.option("--json", "as_json", is_flag=True, help="Say where it listens as a JSON object.")
def serve(
    *,
    container_id: str | None,
    listen: tuple[str, ...],
    links: tuple[str, ...],
    config: Path | None,
    data_dir: str | None,
    as_json: bool,
) -> None:
    """Run a container.

    Options win over the file. Without either, the container listens on 127.0.0.1:5672 for clients
    of this machine. SIGHUP reads the configuration again, SIGTERM lets deliveries settle and stops.
    """

    def read() -> Configuration:
        configuration = load(config) if config is not None else defaults()
        return with_options(configuration, container_id, listen, data_dir, links)

    configuration = read()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if configuration.data_dir is not None:
        Path(configuration.data_dir).mkdir(parents=True, exist_ok=True)
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        runner.run(_run(configuration, read, as_json=as_json))


async def _run(
    configuration: Configuration, read: Callable[[], Configuration], *, as_json: bool
) -> None:
    container = Container(configuration)
    await Service(container, read).run(lambda: _announce(container, as_json=as_json))


def _announce(container: Container, *, as_json: bool) -> None:
    if as_json:
        facts = {"id": container.id, "endpoints": container.endpoints, "process_id": os.getpid()}
        click.echo(json.dumps(facts))
    else:
        click.echo(f"container {container.id} listens on {', '.join(container.endpoints)}")
