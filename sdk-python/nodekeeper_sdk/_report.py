"""Runs an author's report, and calls an author's functions."""

import asyncio
import inspect
import random
import threading
import time

SHORTEST_DELAY = 0.5
LONGEST_DELAY = 30
# A report that failed after this long is restarted with the shortest delay again.
GOOD_AFTER = 10
# The agent keeps as much of a plugin's error.
LONGEST_MESSAGE = 500


async def run_report(report, encode, latest, log):
    """Stores the encoded values of the report until it ends. One that raises is restarted after 0.5 to 30 s.

    Each value is encoded when it is yielded, so a value that can't be, such as a device in place of a pool, fails the report.
    """
    delay = SHORTEST_DELAY
    while True:
        started_at = time.monotonic()
        try:
            async for contents in report():
                latest.set(encode(contents))
            log.info("report ended, its last value stays")
            return
        except Exception as error:
            if time.monotonic() - started_at > GOOD_AFTER:
                delay = SHORTEST_DELAY
            latest.fail(message_of(error))
            # Half of the delay is random, so that the plugins of many nodes do not retry at the same time.
            wait = delay * random.uniform(0.5, 1)
            log.exception("report failed, starting it again in %.1f s", wait)
            await asyncio.sleep(wait)
            delay = min(2 * delay, LONGEST_DELAY)


async def call(function, *arguments):
    """Returns the result of an author's function. One that is not a coroutine runs in a thread, so that it may block."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await _in_thread(function, *arguments)
    return await result if inspect.isawaitable(result) else result


class Turns:
    """Runs an author's function for one key at a time. A call that is cancelled runs to its end, and the next one waits for
    it: a thread can't be cancelled."""

    def __init__(self):
        self._last = {}

    async def call(self, key, function, *arguments):
        task = asyncio.ensure_future(self._after(self._last.get(key), function, *arguments))
        self._last[key] = task
        task.add_done_callback(lambda _: self._last.get(key) is task and self._last.pop(key))
        return await asyncio.shield(task)

    async def _after(self, before, function, *arguments):
        if before:
            await asyncio.wait([before])
        return await call(function, *arguments)


async def _in_thread(function, *arguments):
    # Not asyncio.to_thread: the process would wait for a function that blocks when it ends.
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def end(result, error):
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work():
        result = error = None
        try:
            result = function(*arguments)
        except StopIteration:
            # A future can't have it.
            error = RuntimeError("StopIteration")
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(end, result, error)
        except RuntimeError:
            pass  # The plugin has stopped.

    threading.Thread(target=work, daemon=True).start()
    return await future


def message_of(error):
    return (str(error) or type(error).__name__)[:LONGEST_MESSAGE]
