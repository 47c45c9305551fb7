"""Checks of a configuration that need no container: run them before it is started."""

from __future__ import annotations

import resource
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.cli.doctor.disks import check_disk
from cogwork.cli.doctor.finding import failed, ok, warned
from cogwork.config.errors import ConfigurationError
from cogwork.config.exposure import clear_passwords
from cogwork.config.reading import load, with_options
from cogwork.container.connections.listeners import tls_files
from cogwork.container.mesh.dialler import link_context
from cogwork.tls.contexts import TlsFilesError, server_context
from cogwork.tls.expiry import DAY_S, WARN_S, ends_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from cogwork.cli.doctor.finding import Finding
    from cogwork.config.settings import Configuration

__all__ = ("check_configuration",)

PRIMARIES_MIN = 3

CERTIFICATES = "no client and no container connects by TLS with it"
RENEW = "put a new one in its place, and reload the container (SIGHUP)"


def check_configuration(file: Path) -> Iterator[Finding]:
    """Check a configuration file, and what it names.

    Args:
        file: As `cogwork serve --config` takes it.
    """
    subject, warnings = str(file), list[str]()
    try:
        configuration = with_options(load(file, warn=warnings.append), file=file)
    except ConfigurationError as error:
        yield failed(
            "configuration",
            subject,
            str(error),
            "the container does not start, and a reload changes nothing",
            "correct the file as the message says; docs/configuration.md has all keys",
        )
        return
    yield ok("configuration", subject, "can be used")
    for warning in (*warnings, *clear_passwords(configuration)):
        yield warned(
            "configuration",
            subject,
            warning,
            "somebody else may learn what is secret, or it does not mean what was meant",
            "do as it says",
        )
    yield _descriptors(configuration, subject)
    yield from _certificates(configuration)
    yield from _primaries(configuration, subject)
    if configuration.data_dir is None:
        yield warned(
            "disk",
            subject,
            "no data directory",
            "nothing outlives the process: queues, streams and declarations are in memory alone",
            "set data_dir, if they are to be kept",
        )
    else:
        yield from check_disk(Path(configuration.data_dir))


def _descriptors(configuration: Configuration, subject: str) -> Finding:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = configuration.limits.connections
    told = f"{hard:,} descriptors, {wanted:,} connections"
    if hard != resource.RLIM_INFINITY and hard < wanted:
        return warned(
            "descriptors",
            subject,
            told,
            "clients are refused before limits.connections is reached",
            "raise the limit: LimitNOFILE of the service's unit, or `ulimit -n`",
        )
    return ok("descriptors", subject, told)


def _certificates(configuration: Configuration) -> Iterator[Finding]:
    """Check that the files of TLS can be used, and until when."""
    contexts: list[tuple[str, Callable[[], ssl.SSLContext]]] = []
    files = set[Path]()
    for listen in configuration.listeners:
        if listen.tls is not None:
            found = tls_files(listen.tls)
            contexts.append((f"listen {listen.endpoint}", partial(server_context, found)))
            files.update(filter(None, (found.certificate, found.client_ca)))
    for link in configuration.links:
        target = link.target
        if target.scheme == "amqps":
            contexts.append((f"link {target}", partial(link_context, target)))
            files.update(filter(None, (target.certificate, target.authority)))
    for subject, build in contexts:
        try:
            build()
        except TlsFilesError as error:
            advice = "correct the file, or name another one"
            yield failed("certificates", subject, str(error), CERTIFICATES, advice)
    for path in sorted(files):
        yield from _end(path)


def _end(path: Path) -> Iterator[Finding]:
    """Judge until when a file's certificates hold; one without any has been told of already."""
    ends_s = ends_of(path)
    if not ends_s:
        return
    left_s = min(ends_s) - time.time()
    told = "has expired" if left_s <= 0 else f"expires in {int(left_s // DAY_S)} days"
    if left_s >= WARN_S:
        yield ok("certificates", str(path), told)
    else:
        judge = failed if left_s <= 0 else warned
        yield judge("certificates", str(path), told, CERTIFICATES, RENEW)


def _primaries(configuration: Configuration, subject: str) -> Iterator[Finding]:
    primaries = configuration.cluster.primaries
    if primaries is None:
        return
    count = len(primaries)
    if count >= PRIMARIES_MIN and count % 2:
        yield ok("primaries", subject, f"{count}")
        return
    yield warned(
        "primaries",
        subject,
        f"{count}",
        "nothing can be declared once one is lost"
        if count < PRIMARIES_MIN
        else f"{count} survive the loss of no more than {count - 1} would",
        "name three or five containers as primaries, the same in each file",
    )
