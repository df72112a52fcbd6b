"""A sample reporter plugin: reports simulated widgets of this node, and changes how many can be used."""

import argparse
import asyncio
import contextlib
import glob
import json
import os
import secrets
import signal
import socket
import stat
import time

import grpc
from pluginregistration.v1 import api_pb2 as registration
from pluginregistration.v1 import api_pb2_grpc as registration_services
from reporterplugin.v1alpha1 import api_pb2 as api
from reporterplugin.v1alpha1 import api_pb2_grpc as api_services

WIDGETS = "example.nodekeeper.dev/widgets"
TOTAL = 16
STARTED_AT = time.monotonic()
options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--socket-dir", default="/var/lib/nodekeeper/plugins_registry", help="that the agent watches")
options.add_argument("--name", default="example-reporter", help="the plugin's name")
options.add_argument("--interval", type=float, default=1, help="seconds between changes of the number of usable widgets")
flags = options.parse_args()


class Registration(registration_services.RegistrationServicer):
    async def GetInfo(self, request, context):
        return registration.PluginInfo(type="ReporterPlugin", name=flags.name, supported_versions=["v1alpha1"])

    async def NotifyRegistrationStatus(self, request, context):
        print("registered" if request.plugin_registered else f"refused: {request.error}", flush=True)
        return registration.RegistrationStatusResponse()


class Reporter(api_services.ReporterPluginServicer):
    async def GetReportContent(self, request, context):
        return content()

    async def ListAndWatchReportContent(self, request, context):
        # Everything that the plugin reports, again after each change.
        while True:
            yield content()
            await asyncio.sleep(flags.interval)


def content():
    usable = TOTAL - int((time.monotonic() - STARTED_AT) / flags.interval) % 5
    resources = {"capacity": {WIDGETS: str(TOTAL)}, "allocatable": {WIDGETS: str(usable)}}
    labels = {"example.nodekeeper.dev/has-widgets": "true"}
    node_resource = api.GroupVersionKind(group="node.katalyst.kubewharf.io", version="v1alpha1", kind="CustomNodeResource")
    return api.GetReportContentResponse(
        content=[
            api.ReportContent(groupVersionKind=node_resource, field=[field(api.Status, "resources", resources)]),
            api.ReportContent(
                groupVersionKind=api.GroupVersionKind(version="v1", kind="Node"),
                field=[field(api.Metadata, "labels", labels)],
            ),
        ]
    )


def field(part, name, value):
    return api.ReportField(fieldType=part, fieldName=name, value=json.dumps(value).encode())


def remove_stale_sockets():
    """Removes sockets of this plugin's instances that were killed: no process listens on them."""
    pattern = f"{glob.escape(flags.name)}-{'[0-9a-f]' * 8}.sock"
    for path in glob.glob(os.path.join(glob.escape(flags.socket_dir), pattern)):
        with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
            # A connection to any other file is refused too.
            if not stat.S_ISSOCK(os.lstat(path).st_mode):
                continue
            # A process that is stopped does not accept.
            client.settimeout(1)
            try:
                client.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)


async def main():
    server = grpc.aio.server()
    registration_services.add_RegistrationServicer_to_server(Registration(), server)
    api_services.add_ReporterPluginServicer_to_server(Reporter(), server)
    remove_stale_sockets()
    # Each instance has its own socket: in a rolling update with surge, the agent registers the new instance before the old
    # one ends. The agent skips hidden names: the socket accepts connections as soon as it is visible.
    instance = secrets.token_hex(4)
    path, hidden = (os.path.join(flags.socket_dir, name) for name in (f"{flags.name}-{instance}.sock", f".{instance}.sock"))
    server.add_insecure_port(f"unix:{hidden}")
    await server.start()
    os.rename(hidden, path)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    os.unlink(path)
    await server.stop(grace=1)


asyncio.run(main())
