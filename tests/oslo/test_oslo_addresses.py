"""Addresses of targets, in both notations, and the one that suits what is at the other end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oslo_messaging import Target

from cogwork.oslo.addresses import Addresser, AddressOptions, addresser_for

TARGET = Target(exchange="nova", topic="compute", server="host-3")
FANOUT = Target(exchange="nova", topic="compute", fanout=True)


def made(product: str | None, **options: str) -> Addresser:
    return addresser_for(replace(AddressOptions(), **options), product)


@pytest.mark.parametrize("vhost", ["", "cloud"])
def test_legacy_addresses_have_dots(vhost: str) -> None:
    addresser = made("anything", addressing_mode="legacy", vhost=vhost)
    middle = f".{vhost}" if vhost else ""
    assert addresser.server(TARGET, "rpc") == f"exclusive{middle}.nova.compute.host-3"
    assert addresser.group(TARGET, "rpc") == f"unicast{middle}.nova.compute"
    assert addresser.all(TARGET, "rpc") == f"broadcast{middle}.nova.compute.all"


@pytest.mark.parametrize("vhost", ["", "cloud"])
def test_routable_addresses_have_slashes(vhost: str) -> None:
    addresser = made(None, addressing_mode="routable", vhost=vhost)
    middle = f"/{vhost}" if vhost else ""
    rpc, notify = "openstack.org/om/rpc", "openstack.org/om/notify"
    assert addresser.server(TARGET, "rpc") == f"{rpc}/unicast{middle}/nova/compute/host-3"
    assert addresser.group(TARGET, "rpc") == f"{rpc}/anycast{middle}/nova/compute"
    assert addresser.all(TARGET, "rpc") == f"{rpc}/multicast{middle}/nova/compute"
    assert addresser.group(TARGET, "notify") == f"{notify}/anycast{middle}/nova/compute"


def test_a_server_goes_before_a_fanout_and_both_before_the_group() -> None:
    addresser = made("cogwork")
    both = Target(exchange="nova", topic="compute", server="host-3", fanout=True)
    assert addresser.of(both, "rpc") == addresser.server(TARGET, "rpc")
    assert addresser.of(FANOUT, "rpc") == addresser.all(TARGET, "rpc")
    assert addresser.of(Target(exchange="nova", topic="compute"), "rpc") == addresser.group(
        TARGET, "rpc"
    )


@pytest.mark.parametrize(
    ("product", "is_legacy"),
    [
        (None, True),
        ("qpid-cpp", True),
        ("RabbitMQ", True),
        ("ActiveMQ", True),
        ("qpid-dispatch-router", False),
        ("cogwork", False),
        ("something new", False),
    ],
)
def test_dynamic_takes_what_suits_the_intermediary(product: str | None, is_legacy: bool) -> None:
    assert made(product).is_legacy is is_legacy


def test_an_intermediarys_own_prefixes_hold_where_the_configuration_says_nothing() -> None:
    assert made("RabbitMQ").all(TARGET, "rpc") == "/topic/broadcast.nova.compute.all"
    assert made("RabbitMQ").reply_prefix == "/topic/reply."
    assert made("ActiveMQ").server(TARGET, "rpc") == "queue://exclusive.nova.compute.host-3"
    own = made("RabbitMQ", broadcast_prefix="/exchange/all/x", reply_prefix="/queue/r.")
    assert own.all(TARGET, "rpc") == "/exchange/all/x.nova.compute.all"
    assert own.reply_prefix == "/queue/r."
    assert made("cogwork").reply_prefix is None


def test_exchanges_of_targets_that_name_none() -> None:
    addresser = made("cogwork", rpc_exchange="r", notify_exchange="n")
    target = Target(topic="t")
    assert addresser.group(target, "rpc") == "openstack.org/om/rpc/anycast/r/t"
    assert addresser.group(target, "notify") == "openstack.org/om/notify/anycast/n/t"
