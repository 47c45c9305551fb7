"""Tasks that go on where their connection was read, without another pass of the event loop.

Theory of operation. What completes a future has its task wait for the loop's next pass: a handle is
made and queued, the kernel is asked what else there is, and then the task runs; and what it sends
is flushed by a further pass. For one call at a time that costs more than the reply itself. So a
`Turn` calls a connection's reader, and tasks that await a `Waiter` which was set meanwhile go on as
soon as the batch is over, when nothing of the data plane is half done any more. What they have
flushed "soon" (`call_soon`) is flushed once all have run. A waiter that is set at any other time,
or where a task runs already, wakes its task in the loop's next pass, as a future does.

Compiled: what happens between two messages is most of what Python would add to their cost.
"""

import asyncio

import cython
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.system import clock_s
from cython.cimports.cogwork.dataplane.transport.wire import Wire

__all__ = ("SOURCE_HASH", "Turn", "Waiter")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class Turn:
    """What happens between two waits of one event loop, as far as a client's connection makes it.

    Attributes:
        loop: The event loop.
    """

    def __init__(self, loop: object) -> None:
        """Start with nothing to do.

        Args:
            loop: The event loop that calls its readers.
        """
        self.loop = loop
        self.woken = []
        self.due = []

    def waiter(self) -> object:
        """Make something to wait for."""
        return Waiter(self)

    def call_soon(self, callback: object) -> None:
        """Call something once when the turn is over, or in the loop's next pass."""
        if self.is_reading or self.is_resuming:
            self.due.append(callback)
        else:
            self.loop.call_soon(callback)

    def read(self, reader: object) -> None:
        """Call a reader, and let those go on who waited for what it read."""
        if self.is_reading or self.is_resuming:
            reader()
            return
        self.is_reading = True
        try:
            reader()
        finally:
            self.is_reading = False
            self.resume()

    def spin(self, wire: Wire, waiter: object, spin_s: cython.double) -> bool:
        """Read a connection again and again until a waiter is done, instead of sleeping.

        Args:
            wire: The connection's compiled half.
            waiter: What is waited for.
            spin_s: For how long at most.

        Returns:
            Whether it was done by then.
        """
        awaited: Waiter = waiter
        until_s: cython.double = clock_s() + spin_s
        if self.is_reading or wire.fd < 0:  # a layer, such as TLS, is not read here
            return awaited.is_done
        self.is_reading = True
        try:
            while not awaited.is_done and clock_s() < until_s:
                wire.on_readable()
        finally:
            self.is_reading = False
            self.resume()
        return awaited.is_done

    def wake(self, waiter):
        """Let the task of a waiter go on: when the batch is over, if one is being read."""
        if self.is_reading:
            self.woken.append(waiter)
        else:
            self.loop.call_soon(waiter.callback, waiter, context=waiter.context)
        return 0

    def resume(self):
        """Let those go on who were woken, and call what is due after them."""
        if self.is_resuming or not (self.woken or self.due):
            return 0
        self.is_resuming = True
        try:
            if self.woken and asyncio.current_task(self.loop) is None:
                self.go_on()
        finally:
            self.is_resuming = False
            self.end()
        return 0

    def go_on(self):
        waiter: Waiter
        woken: list
        index: cython.Py_ssize_t
        while self.woken:
            woken = self.woken
            self.woken = []
            index = 0
            try:
                while index < len(woken):
                    waiter = woken[index]
                    index += 1
                    waiter.go_on()
            finally:
                self.woken += woken[index:]  # the loop ends: nobody else goes on here
        return 0

    def end(self):
        waiter: Waiter
        woken: list = self.woken
        due: list = self.due
        self.woken = []
        self.due = []
        for waiter in woken:  # a task is running, or the loop ends
            self.wake(waiter)
        for callback in due:
            callback()
        return 0


class Waiter:
    """What a task waits for, as it would for a future."""

    def __init__(self, turn: Turn) -> None:
        """Is not done.

        Args:
            turn: Of the connection from which it is going to be set.
        """
        self.turn = turn

    def done(self) -> bool:
        """Return whether there is nothing to wait for any more."""
        return self.is_done

    def cancelled(self) -> bool:
        """Return whether nobody waits any more."""
        return self.is_cancelled

    def result(self) -> object:
        """Return what it was set to, or raise that.

        Raises:
            InvalidStateError: It was not set yet.
        """
        if not self.is_done:
            raise asyncio.InvalidStateError("nothing has come yet")
        if self.error is not None:
            raise self.error
        return self.value

    def set_result(self, value: object) -> None:
        """Let its task go on with a value."""
        self.value = value
        self.finish()

    def set_exception(self, error: object) -> None:
        """Let its task go on with an exception."""
        self.error = error
        self.finish()

    def cancel(self, msg: object = None) -> bool:
        """Let its task go on as it is cancelled; return whether it waited."""
        if self.is_done:
            return False
        self.is_cancelled = True
        self.error = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        self.finish()
        return True

    def finish(self):
        if self.is_done:
            raise asyncio.InvalidStateError("it was set already")
        self.is_done = True
        if self.callback is not None:
            self.turn.wake(self)
        if self.others is not None:
            for callback, context in self.others:
                self.turn.loop.call_soon(callback, self, context=context)
        return 0

    def go_on(self):
        callback = self.callback
        self.callback = None
        if self.context is None:
            callback(self)
        else:
            self.context.run(callback, self)
        return 0

    # -- what a task asks of what it awaits

    def get_loop(self) -> object:
        """Return the event loop."""
        return self.turn.loop

    def add_done_callback(self, callback: object, *, context: object = None) -> None:
        """Call `callback` once it is set: the first one in the turn, others in the next pass."""
        if self.is_done:
            self.turn.loop.call_soon(callback, self, context=context)
        elif self.callback is None:
            self.callback = callback
            self.context = context
        else:
            if self.others is None:
                self.others = []
            self.others.append((callback, context))

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        if not self.is_done:
            self._asyncio_future_blocking = True
            return self
        raise StopIteration(self.result())
