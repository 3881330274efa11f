# SPDX-License-Identifier: BSD-3-Clause
"""Await requests in asyncio, by the descriptor of their context."""

from __future__ import annotations

from ._rank import Connection, Context, Envelope, Listener, Request, TimedOutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import Any

# A thread that uses the same context may disarm the descriptor.
_TICK_S = 0.05


class _Loop:
    """Complete the futures of one context in one event loop."""

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self.context = context
        self.loop = loop
        self.fd = context.fileno()
        self.users = 0
        self.waits: dict[asyncio.Future[Any], Callable[[], bool]] = {}
        self.arming = False
        self.tick: asyncio.TimerHandle | None = None

    async def wait(self, ready: Callable[[], bool]) -> None:
        """Wait until ready(), which makes progress, returns True or raises."""
        future: asyncio.Future[None] = self.loop.create_future()
        if self.users == 0:
            self.loop.add_reader(self.fd, self._run)
        self.users += 1
        self.waits[future] = ready
        try:
            self._run()
            await future
        finally:
            self.waits.pop(future, None)
            self.users -= 1
            if self.users == 0:
                self._stop()

    def touch(self) -> None:
        """Arm the descriptor before the loop waits, after a call that may have disarmed it."""
        if self.waits and not self.arming:
            self.arming = True
            self.loop.call_soon(self._run)

    def _run(self) -> None:
        self.arming = True  # calls of ready() need no other run
        try:
            while self.waits:
                self.context.progress()
                self._complete()
                if self.context.arm():
                    break
        except Exception as error:  # the context is closed, or failed
            for future in self.waits:
                if not future.done():
                    future.set_exception(error)
        self.arming = False
        if self.tick is not None:
            self.tick.cancel()
        self.tick = self.loop.call_later(_TICK_S, self._run) if self.waits else None

    def _complete(self) -> None:
        for future, ready in list(self.waits.items()):
            try:
                if not future.done() and ready():
                    future.set_result(None)
            except Exception as error:
                future.set_exception(error)
        for future in [future for future in self.waits if future.done()]:
            del self.waits[future]

    def _stop(self) -> None:
        if self.tick is not None:
            self.tick.cancel()
            self.tick = None
        self.loop.remove_reader(self.fd)
        self.context._loop = None


def _loop(context: Context) -> _Loop:
    import asyncio  # by its users only: it takes longer to import than all else

    loop = asyncio.get_running_loop()
    state: _Loop | None = context._loop
    if state is None or state.loop.is_closed():
        state = context._loop = _Loop(context, loop)
    if state.loop is not loop:
        raise RuntimeError("the context is in use by another event loop")
    return state


async def wait(request: Request) -> Envelope | None:
    if not request.test():
        await _loop(request.context).wait(request.test)
    return request.wait(timeout=0)


async def accept(listener: Listener) -> Connection:
    """Accept a connection, as Listener.accept, in asyncio."""
    found: list[Connection] = []

    def ready() -> bool:
        try:
            found.append(listener.accept(timeout=0))
        except TimedOutError:
            return False
        return True

    if not ready():
        await _loop(listener.context).wait(ready)
    return found[0]


async def connect(context: Context, address: str, **options: Any) -> Connection:
    """Connect, as Context.connect, in asyncio."""
    import asyncio

    return await asyncio.get_running_loop().run_in_executor(None, lambda: context.connect(address, **options))
