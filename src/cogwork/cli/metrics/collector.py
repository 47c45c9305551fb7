"""Turns what was scraped into metric families of the Prometheus client library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from cogwork.cli.metrics.families import ALL_QUEUES, CONTAINER, EXCHANGES, QUEUES, STREAMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prometheus_client.core import Metric as Family

    from cogwork.cli.metrics.families import Metric
    from cogwork.cli.metrics.scrape import Scraped

__all__ = ("Scrape",)

PREFIX = "cogwork_"

OPEN = "open"
"""The state of a stream that takes and gives records."""

Labelled = tuple[tuple[str, ...], "Mapping[str, Any]"]
"""The values of labels, and an entity's attributes."""


class Scrape(Collector):
    """The metrics of one scrape."""

    def __init__(self, scraped: Sequence[Scraped], top: int | None) -> None:
        """Initialize it.

        Args:
            scraped: By worker; empty if the container did not answer.
            top: How many queues, streams and exchanges have metrics of their own: the deepest, the
                largest and the busiest; None for all.
        """
        self._scraped = scraped
        self._most = top

    def collect(self) -> Iterator[Family]:
        """Yield every family."""
        up = "1 if the container has answered this scrape."
        yield GaugeMetricFamily(f"{PREFIX}up", up, value=bool(self._scraped))
        if not self._scraped:
            return
        containers = [((str(each.container["name"]),), each.container) for each in self._scraped]
        info = InfoMetricFamily(f"{PREFIX}container", "The container.", labels=["container"])
        for labels, container in containers:
            info.add_metric(labels, {"version": container["version"]})
        yield info
        yield from _families(CONTAINER, ("container",), containers)
        yield _is_root(self._scraped)
        yield from self._queues()
        yield from self._streams()
        exchanges = self._top("exchanges", "exchange", by="delivered")
        yield from _families(EXCHANGES, ("container", "vhost", "exchange"), exchanges)

    def _queues(self) -> Iterator[Family]:
        yield _count_of("queues", self._scraped)
        for metric in QUEUES:
            if metric.attribute in ALL_QUEUES:
                yield _sum_of(metric, self._scraped)
        rows = self._top("queues", "name", by="depth")
        yield from _families(QUEUES, ("container", "vhost", "queue"), rows)

    def _streams(self) -> Iterator[Family]:
        yield _count_of("streams", self._scraped)
        rows = self._top("streams", "name", by="size_bytes")
        labels = ("container", "vhost", "stream")
        is_open = GaugeMetricFamily(
            f"{PREFIX}stream_open", "1 if the stream is open.", None, labels
        )
        for values, row in rows:
            is_open.add_metric(values, row["state"] == OPEN)
        yield is_open
        yield from _families(STREAMS, labels, rows)

    def _top(self, kind: str, name: str, by: str) -> list[Labelled]:
        """List the entities that have metrics of their own: those with most of something."""
        rows = list(_labelled(self._scraped, kind, name))
        rows.sort(key=lambda each: _value_of(each[1], by) or 0, reverse=True)
        return rows[: self._most]


def _labelled(scraped: Iterable[Scraped], kind: str, name: str) -> Iterator[Labelled]:
    """Yield entities, each with the values of its labels: container, virtual host, name."""
    for each in scraped:
        container = str(each.container["name"])
        for row in getattr(each, kind):
            yield (container, str(row["vhost"]), str(row[name])), row


def _families(
    metrics: Iterable[Metric], labels: Sequence[str], rows: Iterable[Labelled]
) -> Iterator[Family]:
    for metric in metrics:
        family = _family(metric, labels)
        for values, row in rows:
            value = _value_of(row, metric.attribute)
            if value is not None:
                family.add_metric(values, value * metric.scale)
        yield family


def _family(metric: Metric, labels: Sequence[str]) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
    return kind(f"{PREFIX}{metric.name}", metric.help, labels=labels)


def _value_of(row: Mapping[str, Any], attribute: str) -> float | None:
    """Return a number; None where there is none, as for a container without a cluster."""
    found: Any = row
    for part in attribute.split("."):
        found = found.get(part) if found is not None else None
    return None if found is None else float(found)


def _sum_of(metric: Metric, scraped: Iterable[Scraped]) -> Family:
    """Add up a figure of all queues, those without metrics of their own among them."""
    name = metric.name.replace("queue_", "queues_", 1)
    family = GaugeMetricFamily(
        f"{PREFIX}{name}", f"All queues together: {metric.help}", labels=["container"]
    )
    for each in scraped:
        total = sum(_value_of(row, metric.attribute) or 0 for row in each.queues)
        family.add_metric([str(each.container["name"])], total)
    return family


def _count_of(kind: str, scraped: Iterable[Scraped]) -> Family:
    """Count the entities of a kind, those without metrics of their own among them."""
    family = GaugeMetricFamily(f"{PREFIX}{kind}", f"{kind.capitalize()}.", labels=["container"])
    for each in scraped:
        family.add_metric([str(each.container["name"])], len(getattr(each, kind)))
    return family


def _is_root(scraped: Iterable[Scraped]) -> Family:
    text = "1 if the container is the root of its cluster."
    family = GaugeMetricFamily(f"{PREFIX}cluster_root", text, labels=["container"])
    for each in scraped:
        cluster, name = each.container["cluster"], str(each.container["name"])
        if cluster is not None:
            family.add_metric([name], cluster["leader"] == name)
    return family
