"""`cogwork serve`: a container in the foreground."""

from __future__ import annotations

from pathlib import Path

import click

from cogwork.cli.unfinished import unfinished
from cogwork.container.config import defaults, load, with_options

__all__ = ("serve",)

CONFIG_PATH = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--id", "container_id", metavar="NAME", help="The container's id.")
@click.option("--listen", multiple=True, metavar="HOST:PORT", help="Where to listen; repeatable.")
@click.option("--config", type=CONFIG_PATH, metavar="FILE", help="The configuration, in TOML.")
@click.option("--data", "data_dir", metavar="DIR", help="Where to keep files.")
def serve(
    container_id: str | None, listen: tuple[str, ...], config: Path | None, data_dir: str | None
) -> None:
    """Run a container.

    Options win over the file. Without either, the container listens on 127.0.0.1:5672 for clients
    of this machine. SIGHUP reads the configuration again, SIGTERM lets deliveries settle and stops.
    """
    configuration = load(config) if config is not None else defaults()
    configuration = with_options(configuration, container_id, listen, data_dir)
    unfinished("serve", configuration=configuration, config=config)
