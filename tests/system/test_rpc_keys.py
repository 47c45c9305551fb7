"""Calls with a key whose first attempt ends before its method does: it runs once, or is told."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest

import cogwork

from .stories import eventually, story


@story
async def test_a_thread_that_goes_on_after_the_deadline_runs_its_key_once(url: str) -> None:
    effects: list[str] = []
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        service = client.threaded_service("paying", server="one")

        @service.method
        def pay() -> str:
            effects.append("begun")
            time.sleep(1.6)
            effects.append("paid")
            return "receipt"

        async with service:
            call = partial(caller.call, "paying", "pay", server="one", idempotency_key="order-7")
            with pytest.raises(cogwork.CallTimeout):
                await call(timeout_s=1.0)
            assert await call(timeout_s=5) == "receipt", "it waits for the one that runs"
            assert await call(timeout_s=5) == "receipt", "and it is kept"
            assert effects == ["begun", "paid"]


@story
async def test_who_repeats_a_call_that_ends_without_a_reply_is_told(url: str) -> None:
    runs: list[int] = []
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        service = client.service("keyed", server="one")

        @service.method
        async def work() -> str:
            runs.append(1)
            if len(runs) == 1:
                await asyncio.sleep(60)
            return "done"

        async with service:
            call = partial(caller.call, "keyed", "work", server="one", idempotency_key="k")
            first = asyncio.create_task(call(timeout_s=0.5))
            await eventually(lambda: service.running == 1, "it is under work")
            with pytest.raises(cogwork.CallCancelled, match="may be made again"):
                await call(timeout_s=30)
            with pytest.raises(cogwork.CallTimeout):
                await first
            assert await call(timeout_s=5) == "done"


@story
async def test_what_cannot_be_sent_after_the_deadline_is_told_whoever_calls_again(url: str) -> None:
    async with cogwork.connect(url) as client, cogwork.connect(url) as caller:
        service = client.threaded_service("odd", server="one")

        @service.method
        def make() -> object:
            time.sleep(1.6)
            return object()

        async with service:
            call = partial(caller.call, "odd", "make", server="one", idempotency_key="k")
            with pytest.raises(cogwork.CallTimeout):
                await call(timeout_s=1.0)
            for _ in range(2):
                with pytest.raises(cogwork.RemoteError):
                    await call(timeout_s=5)
