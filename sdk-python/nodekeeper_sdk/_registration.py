"""The plugin's side of the registration with the agent: pluginregistration v1."""

import os
import time

import grpc

from nodekeeper_sdk.gen.pluginregistration.v1 import api_pb2 as api

WARN_AFTER = 10


class Registration:
    """What is known of the registration since the socket was served."""

    def __init__(self, path, options, kind):
        self._path, self._options, self._log = path, options, options.log
        # Without an endpoint: the registration socket serves everything.
        self._info = api.PluginInfo(type=kind.plugin_type, name=options.name, supported_versions=kind.versions)
        self.reset()

    def reset(self):
        """Call before the socket is served, because that creates a missing directory."""
        self.served_at = time.monotonic()
        self.was_missing = not os.path.exists(os.path.dirname(self._path))
        self.was_asked = self.has_warned = self.is_registered = False
        self.refusal = None

    def handler(self):
        def unary(function, request):
            return grpc.unary_unary_rpc_method_handler(function, request.FromString, lambda response: response.SerializeToString())

        methods = {
            "GetInfo": unary(self._get_info, api.InfoRequest),
            "NotifyRegistrationStatus": unary(self._notify, api.RegistrationStatus),
        }
        return grpc.method_handlers_generic_handler("pluginregistration.Registration", methods)

    async def _get_info(self, _request, _context):
        self.was_asked = True
        return self._info

    async def _notify(self, answer, _context):
        self.is_registered = answer.plugin_registered
        self.refusal = None if answer.plugin_registered else answer.error
        if self.is_registered:
            self._log.info("registered")
            if self._options.on_registered:
                self._options.on_registered()
        else:
            self._log.error("refused by the agent: %s", answer.error)
            if self._options.on_refused:
                self._options.on_refused(answer.error)
        return api.RegistrationStatusResponse()

    def warn_if_unregistered(self):
        """Warns once each time the socket is served."""
        if self.is_registered or self.has_warned or time.monotonic() - self.served_at < WARN_AFTER:
            return
        self.has_warned = True
        self._log.warning("NK1319: %s is not registered after %d s: %s", self._path, WARN_AFTER, self._reason())

    def _reason(self):
        if self.refusal is not None:
            return f"the agent refused the registration: {self.refusal}"
        if self.was_asked:
            return "the agent called GetInfo and has not reported an outcome yet"
        if self.was_missing:
            return (
                "no agent called the socket: the directory was missing, so this plugin created it; "
                "no agent runs on this node, or it watches another directory"
            )
        return (
            "no agent called the socket: no agent runs on this node, it watches another directory (plugins.directories), "
            "or the socket's owner is not one that it accepts (plugins.allowedUids)"
        )
