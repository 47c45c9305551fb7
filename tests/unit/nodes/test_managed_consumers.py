"""What consumers elsewhere report, and who may take the place of whom."""

from __future__ import annotations

from math import inf, nan
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from management_world import Asker

from cogwork.amqp.message import Sections, Value
from cogwork.container.vhost.reported import Reported
from cogwork.nodes.management.consumers import Consumers
from cogwork.nodes.management.request import Request
from cogwork.plugin.management import CONSUMER, ManagementError

if TYPE_CHECKING:
    from cogwork.plugin.management import ContainerView


def report_of(address: str, **more: object) -> Request:
    about: dict[str, object] = {"address": address, "kind": "spark", "query": "q", **more}
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


@pytest.mark.parametrize("rate", [nan, inf, -1.0, True, "7"])
def test_a_rate_that_is_no_number_is_refused(rate: object) -> None:
    reported = Reported("", lambda: 0.0)
    box = SimpleNamespace(collections={CONSUMER: reported.rows}, note_report=reported.note)
    consumers = Consumers(cast("ContainerView", box))
    asker = Asker(("receive", "stream/ann"))
    with pytest.raises(ManagementError, match="records_per_s is a number"):
        consumers.report(report_of("stream/ann", records_per_s=rate), asker)
    assert len(reported.rows) == 0
