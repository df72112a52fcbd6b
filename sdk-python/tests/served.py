"""A plugin that a test serves, and the agent's side of its socket."""

import asyncio
import contextlib
import os
import tempfile

import grpc

from nodekeeper_sdk.gen.pluginregistration.v1 import api_pb2 as registration


@contextlib.asynccontextmanager
async def served(serve, name="sample", **functions):
    """Serves a plugin in a directory of its own, until the block ends."""
    with tempfile.TemporaryDirectory() as directory:
        # Below it, because a test may remove it.
        plugin = Served(os.path.join(directory, "plugins"))
        coroutine = serve(name=name, socket_dir=plugin.directory, on_registered=plugin.count_registration, **functions)
        plugin.task = asyncio.create_task(coroutine)
        try:
            yield plugin
        finally:
            await plugin.stop()


class Served:
    def __init__(self, directory):
        self.directory = directory
        self.registered = 0
        self.task = None

    def count_registration(self):
        self.registered += 1

    def sockets(self):
        try:
            return [name for name in os.listdir(self.directory) if not name.startswith(".")]
        except FileNotFoundError:
            return []

    @contextlib.asynccontextmanager
    async def connect(self):
        def check():
            if self.task.done():
                self.task.result()
            return len(self.sockets()) == 1

        await until("the socket is served", check)
        async with grpc.aio.insecure_channel(f"unix:{os.path.join(self.directory, self.sockets()[0])}") as channel:
            yield Agent(channel)

    async def stop(self):
        self.task.cancel()
        await asyncio.wait([self.task])


class Agent:
    def __init__(self, channel):
        self._channel = channel

    async def call(self, method, request, response):
        call = self._channel.unary_unary(method, lambda message: message.SerializeToString(), response.FromString)
        return await call(request, wait_for_ready=True)

    def stream(self, method, request, response):
        call = self._channel.unary_stream(method, lambda message: message.SerializeToString(), response.FromString)
        return call(request, wait_for_ready=True)

    async def register(self):
        service = "/pluginregistration.Registration"
        info = await self.call(f"{service}/GetInfo", registration.InfoRequest(), registration.PluginInfo)
        answer = registration.RegistrationStatus(plugin_registered=True)
        await self.call(f"{service}/NotifyRegistrationStatus", answer, registration.RegistrationStatusResponse)
        return info


async def until(what, check):
    """Waits for a condition, as long as a slow machine may take."""
    async with asyncio.timeout(120):
        while not check():
            await asyncio.sleep(0.01)


def report_of(*values):
    """Returns a report that yields these values and then waits."""

    async def report():
        for value in values:
            yield value
        await asyncio.Event().wait()

    return report
