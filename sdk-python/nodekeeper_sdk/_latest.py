"""The newest value of a report, for any number of streams."""

import asyncio


class ReportFailed(Exception):
    """The author's report failed; the message is for the agent."""


class Stopping(Exception):
    """The plugin stops."""


class Latest:
    """Holds an encoded value. A slow stream skips values."""

    def __init__(self):
        self._number = 0
        self._value, self._value_at = None, 0
        self._failure, self._failed_at = None, 0
        self._is_stopped = False
        self._changed = asyncio.Event()

    def set(self, value):
        self._number += 1
        self._value, self._value_at, self._failure = value, self._number, None
        self._wake()

    def fail(self, message):
        """Fails the streams that have the current value, and calls, until the next value."""
        self._number += 1
        self._failure, self._failed_at = message, self._number
        self._wake()

    def stop(self):
        """Ends all streams."""
        self._is_stopped = True
        self._wake()

    async def get(self):
        """Returns the value, waiting for the first one. Raises ReportFailed while the report fails."""
        if self._failure is not None:
            raise ReportFailed(self._failure)
        value, _ = await self._after(0)
        return value

    async def each(self):
        """Yields the value and each later one. If the report failed before, waits until it is restarted."""
        seen = self._failed_at if self._failure is not None else 0
        while True:
            value, seen = await self._after(seen)
            yield value

    async def _after(self, seen):
        while True:
            if self._is_stopped:
                raise Stopping("the plugin is stopping")
            if self._value_at > seen:
                return self._value, self._value_at
            if self._failure is not None and self._failed_at > seen:
                raise ReportFailed(self._failure)
            await self._changed.wait()

    def _wake(self):
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
