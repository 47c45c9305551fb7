"""What consumers elsewhere report, and who may take the place of whom."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from management_world import Asker

from cogwork.amqp.message import Sections, Value
from cogwork.container.reported import Reported
from cogwork.nodes.management.consumers import CONSUMER, Consumers
from cogwork.nodes.management.request import Request
from cogwork.spi.management import ManagementError

if TYPE_CHECKING:
    from cogwork.spi.management import ContainerView


def report_of(address: str) -> Request:
    about = {"address": address, "kind": "spark", "query": "q"}
    asked: dict[str, object] = {"operation": "REPORT", "type": CONSUMER, "name": "nightly"}
    return Request(Sections(application_properties=asked, body=Value(about)))


def test_nobody_reports_in_the_name_of_a_reader_of_another_stream() -> None:
    reported = Reported("", lambda: 0.0)
    box = SimpleNamespace(collections={CONSUMER: reported.rows}, note_report=reported.note)
    consumers = Consumers(cast("ContainerView", box))
    ann, eve = Asker(("receive", "stream/ann")), Asker(("receive", "stream/eve"))
    consumers.report(report_of("stream/ann"), ann)
    with pytest.raises(ManagementError, match="no permission to receive at 'stream/ann'"):
        consumers.report(report_of("stream/eve"), eve)
    row = reported.rows.find("nightly")
    assert row is not None
    assert row["address"] == "stream/ann"
    assert consumers.report(report_of("stream/ann"), ann).status == 204
