"""Serves a plugin on its socket: registration, services, reports, and the end."""

import asyncio
import logging
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

import grpc

from nodekeeper_sdk import _socket
from nodekeeper_sdk._latest import Latest, Stopping
from nodekeeper_sdk._registration import Registration
from nodekeeper_sdk._report import message_of, run_report

CHECK_INTERVAL = 1
SHUTDOWN_SECONDS = 1
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


@dataclass(kw_only=True)
class Options:
    """Options of all plugins."""

    name: str
    """Unique among the node's plugins of the type: letters, digits, '.', '-' and '_', at most 253 characters. The name of
    a device driver is a DNS subdomain of at most 63 characters."""
    socket_dir: str | None = None
    """The directory that the agent watches. Created if it is missing."""
    socket_path: str | None = None
    """A fixed path, at most 107 bytes. Default: a path in socket_dir for each instance."""
    on_serving: Callable[[str], object] | None = None
    """Called with the socket's path each time it is served."""
    on_registered: Callable[[], object] | None = None
    on_refused: Callable[[str], object] | None = None
    """Called with the reason when the agent refuses the plugin."""
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("nodekeeper_sdk"))

    def __post_init__(self):
        if len(self.name) > 253 or not _NAME.fullmatch(self.name):
            rule = "a name has 1 to 253 characters out of letters, digits, '.', '-' and '_', and begins and ends with a letter or digit"
            raise ValueError(f"name {self.name[:100]!r}: {rule}")
        if not self.socket_path and not self.socket_dir:
            raise ValueError('socket_dir is missing: the directory that the agent watches, such as "/var/lib/nodekeeper/plugins_registry"')


class Kind:
    """What is specific to a type of plugin."""

    def __init__(self, plugin_type, versions, max_request_bytes=4 * 1024 * 1024):
        self.plugin_type = plugin_type
        self.versions = versions
        self.max_request_bytes = max_request_bytes
        self.reports = []
        self.log = logging.getLogger("nodekeeper_sdk")
        self._methods = {}

    def report(self, report, response, field_name):
        """Runs an author's report beside the services, and returns its encoded values."""
        latest = Latest()
        self.reports.append((report, lambda contents: response(**{field_name: contents}).SerializeToString(), latest))
        return latest

    def stream(self, service, method, latest, on_asked=lambda: None):
        """Serves each value of a report. `on_asked` is called with each call."""

        async def handle(_request, context):
            try:
                on_asked()
                async for value in latest.each():
                    yield value
            except Exception as error:
                await _abort(context, error)

        handler = grpc.unary_stream_rpc_method_handler(handle)
        self._methods.setdefault(service, {})[method] = handler

    def latest(self, service, method, latest):
        """Serves the value of a report."""

        async def handle(_request, context):
            try:
                return await latest.get()
            except Exception as error:
                await _abort(context, error)

        self._methods.setdefault(service, {})[method] = grpc.unary_unary_rpc_method_handler(handle)

    def unary(self, service, method, request, answer):
        """Serves an author's function; `answer` gets the request and returns the response. What it raises fails the call."""

        async def handle(message, context):
            try:
                return await answer(message)
            except Exception as error:
                self.log.exception("%s failed", method)
                await _abort(context, error)

        handler = grpc.unary_unary_rpc_method_handler(
            handle, request_deserializer=request.FromString, response_serializer=lambda response: response.SerializeToString()
        )
        self._methods.setdefault(service, {})[method] = handler

    def handlers(self):
        return [grpc.method_handlers_generic_handler(service, methods) for service, methods in self._methods.items()]


async def _abort(context, error):
    code = grpc.StatusCode.UNAVAILABLE if isinstance(error, Stopping) else grpc.StatusCode.INTERNAL
    await context.abort(code, message_of(error))


async def serve(options, kind):
    """Serves until it is cancelled, and removes the socket then. Raises if the plugin can't be served, or if another process
    takes its socket."""
    kind.log = options.log
    if options.socket_path is None:
        _socket.remove_stale_sockets(options.socket_dir, options.name)
    path = options.socket_path or _socket.instance_path(options.socket_dir, options.name)
    reports = [asyncio.create_task(run_report(*report, options.log)) for report in kind.reports]
    try:
        await _Server(os.path.abspath(path), options, kind).keep()
    finally:
        for task in reports:
            task.cancel()
        # A report that ignores its cancellation must not delay the end.
        if reports:
            await asyncio.wait(reports, timeout=SHUTDOWN_SECONDS)


class _Server:
    def __init__(self, path, options, kind):
        self._path, self._options, self._kind, self._log = path, options, kind, options.log
        self._registration = Registration(path, options, kind)
        self._server = self._identity = None

    async def keep(self):
        try:
            await self._serve()
            while True:
                await asyncio.sleep(CHECK_INTERVAL)
                await self._check()
        finally:
            for _, _, latest in self._kind.reports:
                latest.stop()
            _socket.remove_own(self._path, self._identity)
            if self._server:
                await asyncio.shield(self._server.stop(SHUTDOWN_SECONDS))

    async def _check(self):
        if _socket.identity_at(self._path) == self._identity:
            return self._registration.warn_if_unregistered()
        if _socket.probe(self._path) == "accepts":
            raise ValueError(f"another process took the socket {self._path}")
        self._log.warning("socket %s disappeared, serving again", self._path)
        try:
            await self._serve()
        except (OSError, RuntimeError):
            # The directory may be created again.
            self._log.exception("failed to serve the socket, retrying")

    async def _serve(self):
        self._registration.reset()
        hidden = _socket.hidden_path(self._path)
        _socket.check_path(self._path, hidden)
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", self._kind.max_request_bytes)])
        server.add_generic_rpc_handlers([self._registration.handler(), *self._kind.handlers()])
        server.add_insecure_port(f"unix:{hidden}")
        await server.start()
        try:
            self._identity = _socket.publish(hidden, self._path)
        except OSError:
            await server.stop(None)
            raise
        previous, self._server = self._server, server
        if previous:
            await previous.stop(None)
        self._log.info("serving %s", self._path)
        if self._options.on_serving:
            self._options.on_serving(self._path)


def run(serving):
    """Runs a `serve_*` coroutine until it ends, or SIGINT or SIGTERM ends the plugin."""

    async def until_stopped():
        task = asyncio.ensure_future(serving)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    asyncio.run(until_stopped())
