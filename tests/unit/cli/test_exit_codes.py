"""Which errors become which exit code."""

from __future__ import annotations

from cogwork.cli.exit_codes import ExitCode, code_of
from cogwork.log.errors import ForeignFile
from cogwork.pipeline.audit.errors import AuditError


def test_what_an_audit_does_not_find_is_not_there() -> None:
    assert code_of(AuditError("stream/none has no table in this archive")) == ExitCode.NOT_FOUND


def test_another_containers_directory_is_a_mistake_in_the_configuration() -> None:
    error = ForeignFile("data/log/1.wal", "container north", "container south")
    assert code_of(error) == ExitCode.CONFIGURATION
