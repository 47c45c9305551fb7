"""The event loop whose selector calls readers itself."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

import pytest

from cogwork.io.linger import LingeringSocket
from cogwork.io.listener import Listener, listening_socket
from cogwork.io.loop import EventLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


def run(story: Coroutine[object, object, T]) -> T:
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        return runner.run(story)


def pair(stack: ExitStack) -> tuple[socket.socket, socket.socket]:
    near, far = socket.socketpair()
    for each in (near, far):
        stack.enter_context(each)
        each.setblocking(False)
    return near, far


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_what_has_input_is_read_until_its_reader_is_removed() -> None:
    async def story() -> tuple[list[str], list[bool]]:
        loop = asyncio.get_running_loop()
        read: list[str] = []
        with ExitStack() as stack:
            near, far = pair(stack)
            _, silent = pair(stack)
            loop.add_reader(far, lambda: read.append(far.recv(16).decode()))
            loop.add_reader(silent, read.append, "silent")
            near.send(b"one")
            await turns()
            near.send(b"two")
            await turns()
            removed = [loop.remove_reader(each) for each in (far, silent, far.fileno())]
            near.send(b"three")
            await turns()
        return read, removed

    assert run(story()) == (["one", "two"], [True, True, False])


def test_a_reader_takes_the_place_of_the_one_before_it() -> None:
    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        read: list[str] = []
        with ExitStack() as stack:
            near, far = pair(stack)
            loop.add_reader(far, read.append, "first")
            loop.add_reader(far, lambda: read.append("second " + far.recv(16).decode()))
            near.send(b"x")
            await turns()
            loop.remove_reader(far)
        return read

    assert run(story()) == ["second x"]


def test_a_descriptor_that_asyncio_read_from_can_be_another_socket() -> None:
    async def story() -> list[bytes]:
        loop = asyncio.get_running_loop()
        received: list[bytes] = []
        for text in (b"one", b"two"):
            near, far = socket.socketpair()
            with near, far:
                far.setblocking(False)
                waiting = asyncio.ensure_future(loop.sock_recv(far, 16))
                await turns()
                near.send(text)
                async with asyncio.timeout(30):
                    received.append(await waiting)
                assert not loop.remove_reader(far), "asyncio has taken its own reader away"
        return received

    assert run(story()) == [b"one", b"two"]


def test_a_socket_removed_by_another_in_the_same_turn_is_not_read() -> None:
    async def story() -> int:
        loop = asyncio.get_running_loop()
        read: list[None] = []
        with ExitStack() as stack:
            pairs = [pair(stack) for _ in range(2)]

            def read_alone() -> None:
                read.append(None)
                for _, far in pairs:
                    loop.remove_reader(far)

            for near, far in pairs:
                loop.add_reader(far, read_alone)
                near.send(b"x")
            await turns()
        return len(read)

    assert run(story()) == 1


def test_a_readers_fault_goes_to_the_loop_and_spares_the_others() -> None:
    async def story() -> tuple[list[bytes], list[str]]:
        loop = asyncio.get_running_loop()
        faults: list[str] = []
        loop.set_exception_handler(lambda _loop, told: faults.append(str(told["exception"])))
        read: list[bytes] = []

        def take(far: socket.socket) -> None:
            octets = far.recv(16)
            if octets == b"1":
                raise ValueError("a fault")
            read.append(octets)

        with ExitStack() as stack:
            for number in range(3):
                near, far = pair(stack)
                loop.add_reader(far, take, far)
                stack.callback(loop.remove_reader, far)
                near.send(str(number).encode())
            await turns()
        return read, faults

    assert run(story()) == ([b"0", b"2"], ["a fault"])


@pytest.mark.parametrize("reader_goes_first", [True, False])
def test_one_socket_is_read_and_written_independently(*, reader_goes_first: bool) -> None:
    async def story() -> tuple[bool, bool, bool]:
        loop = asyncio.get_running_loop()
        counts = {"reads": 0, "writes": 0}

        def count(what: str) -> None:
            counts[what] += 1

        with ExitStack() as stack:
            near, far = pair(stack)
            near.send(b"x")
            loop.add_reader(far, count, "reads")
            loop.add_writer(far, count, "writes")
            await turns()
            both = counts["reads"] > 0 < counts["writes"]
            (loop.remove_reader if reader_goes_first else loop.remove_writer)(far)
            await turns(1)
            counts.update(reads=0, writes=0)
            await turns()
            one = counts["reads"] > 0, counts["writes"] > 0
            (loop.remove_writer if reader_goes_first else loop.remove_reader)(far)
        return both, *one

    assert run(story()) == (True, not reader_goes_first, reader_goes_first)


def test_transports_timers_and_threads_are_served_as_ever() -> None:
    async def story() -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write((await reader.readline()).upper())
            writer.close()

        loop = asyncio.get_running_loop()
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            answered = await asyncio.wait_for(reader.read(), 5)
            writer.close()
        await asyncio.sleep(0.01)
        return await loop.run_in_executor(None, lambda: answered)

    assert run(story()) == b"HELLO\n"


def test_a_socket_closed_by_its_reader_is_not_written_in_the_same_turn() -> None:
    class Waiting(LingeringSocket):
        woken = 0

        def on_writable(self) -> None:
            self.woken += 1

    async def story() -> tuple[int, bool]:
        with ExitStack() as stack:
            near, far = pair(stack)
            waiting = Waiting(far)
            waiting.discard_input()
            waiting.want_write()
            near.close()
            await turns()
            return waiting.woken, waiting.is_closed

    assert run(story()) == (0, True)


def test_accepted_sockets_send_small_frames_at_once() -> None:
    async def story() -> int:
        accepted: list[socket.socket] = []
        listener = Listener(listening_socket("127.0.0.1", 0), accepted.append)
        with socket.create_connection(("127.0.0.1", listener.port)):
            while not accepted:
                await asyncio.sleep(0.001)
            listener.close()
            with accepted[0] as sock:
                return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    assert run(story()) == 1


@pytest.mark.parametrize("schedule", ["call_soon", "call_later", "future"])
def test_what_a_reader_schedules_runs_though_nothing_else_happens(schedule: str) -> None:
    """The selector waits on after a reader; it must come back for what that one has begun."""

    async def story() -> bytes:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()
        with ExitStack() as stack:
            near, far = pair(stack)

            def read() -> None:
                octets = far.recv(16)
                if schedule == "call_soon":
                    loop.call_soon(done.set_result, octets)
                elif schedule == "call_later":
                    loop.call_later(0.001, done.set_result, octets)
                else:
                    done.set_result(octets)

            loop.add_reader(far, read)
            stack.callback(loop.remove_reader, far)
            loop.call_later(0.001, near.send, b"x")
            return await done

    assert run(asyncio.wait_for(story(), 5)) == b"x"


def test_readers_that_never_rest_do_not_hold_timers_up() -> None:
    async def story() -> int:
        loop = asyncio.get_running_loop()
        reads = 0
        with ExitStack() as stack:
            near, far = pair(stack)
            near.send(b"x")  # never received: the reader is called again and again

            def read() -> None:
                nonlocal reads
                reads += 1

            loop.add_reader(far, read)
            stack.callback(loop.remove_reader, far)
            await asyncio.sleep(0.01)
        return reads

    assert run(asyncio.wait_for(story(), 5)) > 1


def test_another_thread_wakes_a_loop_that_waits() -> None:
    async def story() -> str:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[str] = loop.create_future()
        threading.Timer(0.01, loop.call_soon_threadsafe, (done.set_result, "woken")).start()
        return await done

    assert run(asyncio.wait_for(story(), 5)) == "woken"


def flood(
    loop: asyncio.AbstractEventLoop, stack: ExitStack, name: str, read: list[str]
) -> socket.socket:
    """Make a socket that always has input, and is slow to read."""
    near, far = pair(stack)
    near.send(b"x")

    def take() -> None:
        read.append(name)
        time.sleep(0.001)

    loop.add_reader(far, take)
    stack.callback(loop.remove_reader, far)
    return far


def read_with_preferred(then: Callable[[EventLoop, list[str]], object]) -> list[str]:
    """Have one socket with input preferred to three busy ones, and wait for its turn.

    Args:
        then: Called once the preferred one was read, to have "turn" noted in due time.

    Returns:
        The names of what was read, in order, "urgent" for the preferred one.
    """

    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EventLoop)
        read: list[str] = []
        with ExitStack() as stack:
            for number in range(3):
                flood(loop, stack, f"busy {number}", read)
            near, far = pair(stack)

            def take() -> None:
                far.recv(16)
                read.append("urgent")
                then(loop, read)

            loop.add_reader(far, take)
            stack.callback(loop.remove_reader, far)
            loop.prefer(far)
            near.send(b"x")
            while "turn" not in read:
                await asyncio.sleep(0)
        return read

    return run(story())


def test_what_is_preferred_is_read_between_two_others_and_the_loop_has_its_turn() -> None:
    read = read_with_preferred(lambda loop, read: loop.call_soon(read.append, "turn"))
    assert read.index("turn") == read.index("urgent") + 1
    assert read.index("urgent") <= 1


def test_what_is_preferred_and_collects_something_has_that_dealt_with_before_others_are_read() -> (
    None
):
    read = read_with_preferred(
        lambda loop, read: loop.call_after_readers(lambda: read.append("turn"))
    )
    assert read.index("turn") == read.index("urgent") + 1
    assert read.index("urgent") <= 1


def test_what_readers_collect_is_dealt_with_once_all_were_called_without_a_pass_of_the_loop() -> (
    None
):
    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EventLoop)
        seen: list[str] = []
        done = asyncio.Event()
        collected: list[str] = []

        def end() -> None:
            seen.append(" ".join(sorted(collected)))
            collected.clear()
            if len(seen) == 1:
                for near in nears:
                    near.send(b"y")
            else:
                loop.call_soon(done.set)

        def take(far: socket.socket, name: str) -> None:
            if not collected:
                loop.call_after_readers(end)
            collected.append(name + far.recv(16).decode())

        with ExitStack() as stack:
            pairs = [pair(stack) for _ in range(2)]
            nears = [near for near, _ in pairs]
            for name, (near, far) in zip("ab", pairs, strict=True):
                near.send(b"x")
                loop.add_reader(far, take, far, name)
                stack.callback(loop.remove_reader, far)
            passes = 0
            while not done.is_set():
                passes += 1
                await (done.wait() if passes > 1 else asyncio.sleep(0))
        return seen

    assert run(story()) == ["ax bx", "ay by"]


def test_what_is_asked_for_by_a_callback_comes_before_the_loop_waits_and_a_fault_hurts_nobody() -> (
    None
):
    async def story() -> tuple[list[str], list[object]]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EventLoop)
        done: list[str] = []
        faults: list[object] = []
        over = loop.create_future()
        loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))

        def fail() -> None:
            raise ZeroDivisionError

        def again() -> None:
            done.append("first")
            loop.call_after_readers(lambda: done.append("second"))
            loop.call_after_readers(lambda: over.set_result(None))

        loop.call_after_readers(fail)
        loop.call_after_readers(again)
        await over
        return done, faults

    done, faults = run(story())
    assert done == ["first", "second"]
    assert [type(each) for each in faults] == [ZeroDivisionError]


def test_what_is_preferred_starves_nobody() -> None:
    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EventLoop)
        read: list[str] = []
        with ExitStack() as stack:
            for number in range(3):
                flood(loop, stack, f"busy {number}", read)
            near, far = pair(stack)
            near.send(b"x")
            loop.add_reader(far, lambda: loop.call_soon(read.append, "turn"))
            stack.callback(loop.remove_reader, far)
            loop.prefer(far)
            await turns(30)
        return read

    read = run(story())
    counts = [read.count(f"busy {number}") for number in range(3)]
    assert min(counts) > 0
    assert max(counts) - min(counts) <= 1


def test_what_is_preferred_comes_first_of_what_has_input_and_the_others_at_once_after_it() -> None:
    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EventLoop)
        read: list[str] = []
        done = loop.create_future()

        def take(far: socket.socket, name: str) -> None:
            far.recv(16)
            read.append(name)
            if name == "first":
                loop.call_after_readers(lambda: read.append("after the first"))
            elif len(read) == 4:
                done.set_result(None)

        with ExitStack() as stack:
            for name in ("other", "another", "first"):
                near, far = pair(stack)
                near.send(b"x")
                loop.add_reader(far, take, far, name)
                stack.callback(loop.remove_reader, far)
            loop.prefer(far)
            await done
        return read

    assert run(story()) == ["first", "after the first", "other", "another"]


def test_what_was_preferred_and_removed_is_like_any_other() -> None:
    async def story() -> tuple[list[str], bool]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, EventLoop)
        read: list[str] = []
        with ExitStack() as stack:
            near, far = pair(stack)
            loop.add_reader(far, read.append, "first")
            loop.prefer(far)
            loop.add_writer(far, read.append, "writer")
            near.send(b"x")
            await turns()
            assert {"first", "writer"} <= set(read)
            assert loop.remove_writer(far)
            assert loop.remove_reader(far)
            read.clear()
            loop.add_reader(far, lambda: read.append(far.recv(16).decode()))
            await turns()
            return read, loop.remove_reader(far)

    assert run(story()) == (["x"], True)
