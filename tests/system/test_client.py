"""The client and a container, with nothing going wrong."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.testing import container

from .stories import eventually, story

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from cogwork.client import Publisher


@story
async def test_ten_lines(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.subscribe("topic/ten.#") as messages,
    ):
        await client.publish("topic/ten.lines", "hello", subject="s", properties={"n": 1})
        async for message in messages:
            assert (message.body, message.subject) == ("hello", "s")
            assert message.properties == {"n": 1}
            break


@story
async def test_bodies_keep_their_types(url: str) -> None:
    bodies = [
        b"bytes",
        "text",
        None,
        True,
        -7,
        2.5,
        uuid.uuid4(),
        Decimal("1.5"),
        dt.datetime(2013, 1, 1, 5, 15, tzinfo=dt.UTC),
        [1, "two", None],
        {"map": {"of": b"maps"}},
        b"x" * 1_000_000,
    ]
    async with (
        cogwork.connect(url) as client,
        client.subscribe("topic/types") as messages,
        client.publisher("topic/types") as out,
    ):
        outcomes = await out.send_batch(bodies)
        assert all(outcome.is_accepted for outcome in outcomes)
        got = [await anext(messages) for _ in bodies]
    assert [message.body for message in got] == bodies


@pytest.mark.parametrize("credit", [500, 5_000])
@story
async def test_order_and_count_survive_more_than_all_windows(url: str, credit: int) -> None:
    """With 500 credit is what ends first, with 5,000 the session's window."""
    count = 50_000
    async with (
        cogwork.connect(url) as client,
        client.subscribe("topic/many", credit=credit) as messages,
        client.publisher("topic/many") as out,
    ):
        sending = asyncio.create_task(out.send_batch(range(count)))
        seen = 0
        async for batch in messages.batches(700):
            assert [message.body for message in batch] == list(range(seen, seen + len(batch)))
            seen += len(batch)
            if seen == count:
                break
        assert all(outcome.is_accepted for outcome in await sending)


@story
async def test_posts_are_pipelined_and_flushed(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.publisher("sink/posts") as out,
    ):
        posts = []
        for number in range(20_000):
            posts.append(out.post(number))
            await out.ready()
        await out.flush()
        assert all(post.is_done for post in posts)
        await posts[0]


def post_many(out: Publisher, count: int) -> None:
    """Post and never waits."""
    for number in range(count):
        out.post(number)


@story
async def test_posting_without_ever_waiting_is_stopped(url: str) -> None:
    async with cogwork.connect(url) as client:
        out = client.publisher("unicast/nobody-listens")
        await out.open()
        with pytest.raises(cogwork.BacklogFull, match="ready"):
            post_many(out, 1_000_000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await out.ready()
        await out.shut()


@story
async def test_settled_messages_arrive_too(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.subscribe("topic/settled", settled=True) as messages,
        client.publisher("topic/settled") as out,
    ):
        await out.send(1, settled=True)
        await client.publish("topic/settled", 2, settled=True)
        await out.send_batch([3, 4], settled=True)
        got = [(await anext(messages)).body for _ in range(4)]
    assert sorted(map(str, got)) == ["1", "2", "3", "4"]


@story
async def test_consumers_settle_each_in_its_way(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.consume("unicast/ways", credit=4) as items,
        client.publisher("unicast/ways") as out,
    ):
        posts = [out.post(number) for number in range(4)]
        accepted, rejected, released, modified = [await anext(items) for _ in range(4)]
        assert items.held == 4
        await accepted.accept()
        await rejected.reject("bad", "amqp:not-allowed")
        released.release()
        modified.modify(failed=True)
        await posts[0]
        with pytest.raises(cogwork.Rejected, match="bad") as caught:
            await posts[1]
        assert caught.value.condition == cogwork.Condition.NOT_ALLOWED
        with pytest.raises(cogwork.Released):
            await posts[2]
        with pytest.raises(cogwork.InDoubt):
            await posts[3]
        assert items.held == 0
        with pytest.raises(cogwork.CogworkError, match="only once"):
            accepted.release()


@story
async def test_credit_counts_what_is_held(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.consume("unicast/held", credit=2) as items,
        client.publisher("unicast/held") as out,
    ):
        posts = [out.post(number) for number in range(6)]
        first, second = [await anext(items) for _ in range(2)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await anext(items)
        await first.accept()
        await second.accept()
        async for item in items:
            item.accept_nowait()
            if item.body == 5:
                break
        await items.flush()
        for post in posts:
            await post


@story
async def test_batches_are_accepted_whole(url: str) -> None:
    count = 10_000
    async with (
        cogwork.connect(url) as client,
        client.consume("unicast/batches", credit=1000) as items,
        client.publisher("unicast/batches") as out,
    ):
        sent = out.post_batch(range(count))
        seen = 0
        async for batch in items.batches():
            await items.accept(batch)
            seen += len(batch)
            if seen == count:
                break
        assert all(outcome.is_accepted for outcome in await sent)


BIG = b"x" * 9_000_000


async def arrives(url: str, address: str, sending: Awaitable[None]) -> None:
    """See that six large messages arrive whole of what somebody sends and leaves."""
    async with cogwork.connect(url) as client, client.consume(address) as items:
        await sending
        async with asyncio.timeout(30):
            for _ in range(6):
                item = await anext(items)
                assert item.body == BIG
                await item.accept()


@story
async def test_what_was_sent_settled_leaves_before_its_publisher_does(url: str) -> None:
    async def send() -> None:
        async with client.publisher("queue/large.a") as out:
            for _ in range(6):
                out.post(BIG, settled=True)

    async with cogwork.connect(url) as client:
        await arrives(url, "queue/large.a", send())


@story
async def test_what_was_sent_settled_leaves_before_its_mesh_does(url: str) -> None:
    async def send() -> None:
        async with cogwork.connect(url) as client:
            for _ in range(6):
                await client.publish("queue/large.b", BIG, settled=True)

    await arrives(url, "queue/large.b", send())


@story
async def test_failures_within_a_batch_are_told_unless_somebody_awaits_them(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.consume("unicast/refused") as items,
    ):

        async def refuse_odd_ones() -> None:
            async for item in items:
                if item.body in (1, 3):
                    item.reject("odd")
                else:
                    item.accept_nowait()

        refusing = asyncio.create_task(refuse_odd_ones())
        with pytest.raises(cogwork.Rejected, match="odd"):
            async with client.publisher("unicast/refused") as out:
                assert len(out.post_batch(range(4))) == 4
        async with client.publisher("unicast/refused") as out:
            out.post_batch([0, 2])
            awaited = out.post_batch([0, 1])
            assert [outcome.is_accepted for outcome in await awaited] == [True, False]
            failed = out.post_batch([1])
            with pytest.raises(cogwork.Rejected, match="odd"):
                await out.flush()
            assert [outcome.is_accepted for outcome in await failed] == [False]
        refusing.cancel()


@story
async def test_what_is_not_handed_over_goes_back(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.publisher("unicast/leave") as out,
    ):
        async with client.consume("unicast/leave", credit=10) as items:
            posts = [out.post(number) for number in range(10)]
            await (await anext(items)).accept()
        await posts[0]
        for post in posts[1:]:
            with pytest.raises(cogwork.Released):
                await post


@story
async def test_an_item_is_settled_once_and_the_first_word_counts(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.consume("unicast/once", credit=1) as items,
        client.publisher("unicast/once") as out,
    ):
        post = out.post(1)
        item = await anext(items)
        claim = item.accept()
        with pytest.raises(cogwork.CogworkError, match="only once"):
            item.accept()
        await claim
        await post


@story
async def test_items_that_come_settled_can_be_accepted_all_the_same(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.consume("unicast/free") as items,
        client.publisher("unicast/free") as out,
    ):
        await out.send_batch([1, 2, 3], settled=True)
        await (await anext(items)).accept()
        (await anext(items)).accept_nowait()
        await items.accept([await anext(items)])


@story
async def test_what_is_too_large_is_not_even_sent(url: str) -> None:
    with container("[limits]\nmax_message_size_bytes = 100_000\n") as small:
        async with cogwork.connect(small) as client:
            with pytest.raises(cogwork.MessageTooLarge, match="100000"):
                await client.publish("sink/a", bytes(100_001))
            await client.publish("sink/a", bytes(99_000))


@story
async def test_keywords_are_for_bodies(url: str) -> None:
    async with cogwork.connect(url) as client:
        with pytest.raises(TypeError, match="subject"):
            await client.publish("sink/a", cogwork.Message(1), subject="s")


@story
async def test_selectors_choose(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.subscribe("topic/chosen", selector="n > 1") as messages,
    ):
        for number in range(4):
            await client.publish("topic/chosen", number, properties={"n": number})
        assert [(await anext(messages)).body for _ in range(2)] == [2, 3]


@story
async def test_no_local_leaves_out_what_this_mesh_sends(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        cogwork.connect(url) as other,
        client.subscribe("topic/local", no_local=True) as messages,
    ):
        await client.publish("topic/local", "mine")
        await other.publish("topic/local", "theirs")
        assert (await anext(messages)).body == "theirs"


@story
async def test_patterns_change_without_detaching(url: str) -> None:
    async with (
        cogwork.connect(url) as client,
        client.subscribe("topic/bound.a") as messages,
    ):
        await messages.bind("bound.b.*")
        await client.publish("topic/bound.b.c", 1)
        assert (await anext(messages)).body == 1
        await messages.unbind("bound.b.*")
        await client.publish("topic/bound.b.c", 2)
        await client.publish("topic/bound.a", 3)
        assert (await anext(messages)).body == 3


@story
async def test_calls_are_answered_side_by_side(url: str) -> None:
    async def slowly(request: cogwork.Message) -> object:
        number = request.body
        assert isinstance(number, int)
        await asyncio.sleep(0.05 if number == 0 else 0)
        return number * 2

    async with (
        cogwork.connect(url) as client,
        client.serve("service/double", slowly),
    ):
        replies = await asyncio.gather(*(client.request("service/double", n) for n in range(10)))
    assert [reply.body for reply in replies] == [n * 2 for n in range(10)]


@story
async def test_what_a_handler_raises_is_the_answer(url: str) -> None:
    def fail(request: cogwork.Message) -> object:
        raise ValueError(f"not {request.body}")

    async with (
        cogwork.connect(url) as client,
        client.serve("service/fail", fail),
    ):
        with pytest.raises(cogwork.CallFailed, match="ValueError: not this"):
            await client.request("service/fail", "this")


@story
async def test_a_handler_that_would_end_the_process_fails_its_request(url: str) -> None:
    async def leave(request: cogwork.Message) -> object:
        if request.body == "leave":
            raise SystemExit("leaving")
        return request.body

    async with cogwork.connect(url) as client, client.serve("service/leave", leave):
        with pytest.raises(cogwork.CallFailed, match="SystemExit: leaving"):
            await client.request("service/leave", "leave", timeout_s=10)
        assert (await client.request("service/leave", "stay")).body == "stay"


@story
async def test_a_call_that_nobody_answers_ends(url: str) -> None:
    never = asyncio.Event()

    async def silence(_: cogwork.Message) -> None:
        await never.wait()

    async with cogwork.connect(url) as client:
        with pytest.raises(cogwork.Released, match="service/nobody"):
            await client.request("service/nobody", 1)
        async with client.serve("service/silent", silence):
            with pytest.raises(cogwork.CallTimeout, match="service/silent"):
                await client.request("service/silent", 1, timeout_s=0.1)


@story
async def test_refusals_name_the_address(url: str) -> None:
    async with cogwork.connect(url) as client:
        with pytest.raises(cogwork.LinkRefused, match=r"topic/bad\.\*"):
            await client.publisher("topic/bad.*").open()
        with pytest.raises(cogwork.LinkRefused, match="selector"):
            await client.subscribe("topic/x", selector="n >").open()


@story
async def test_nothing_but_the_connection_is_left_behind(url: str) -> None:
    tasks = asyncio.all_tasks()
    async with cogwork.connect(url) as client:
        async with client.subscribe("topic/left") as messages:
            waiting = asyncio.ensure_future(anext(messages))
            await asyncio.sleep(0.01)
            waiting.cancel()
        await client.publish("sink/left", 1)
    with pytest.raises(cogwork.Disconnected):
        await client.publish("sink/left", 2)
    await eventually(lambda: asyncio.all_tasks() == tasks, "no task is left")


@story
async def test_closing_ends_what_waits(url: str) -> None:
    async with cogwork.connect(url) as client:
        messages = client.subscribe("topic/closing")
        await messages.open()
        waiting = asyncio.ensure_future(anext(messages))
        await asyncio.sleep(0.01)
    with pytest.raises(cogwork.Disconnected):
        await waiting
