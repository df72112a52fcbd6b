"""A sample device driver: streams simulated accelerators of this node, prepares them for pods, reports their health."""

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
from nodekeeper.devices.v1alpha1 import api_pb2 as api
from nodekeeper.devices.v1alpha1 import api_pb2_grpc as api_services
from nodekeeper.devices.v1alpha1 import preparation_pb2 as claims
from nodekeeper.devices.v1alpha1 import preparation_pb2_grpc as claim_services
from pluginregistration.v1 import api_pb2 as registration
from pluginregistration.v1 import api_pb2_grpc as registration_services

CONTRACT = "nodekeeper.devices.v1alpha1"
STARTED_AT = time.monotonic()
options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--socket-dir", default="/var/lib/nodekeeper/plugins_registry", help="that the agent watches")
options.add_argument("--name", default="accelerators.example.com", help="the driver's name, by which claims select it")
options.add_argument("--count", type=int, default=8, help="how many accelerators")
options.add_argument("--interval", type=float, default=5, help="seconds between changes of the health of one")
flags = options.parse_args()


class Registration(registration_services.RegistrationServicer):
    async def GetInfo(self, request, context):
        versions = [CONTRACT, f"{CONTRACT}.DevicePreparation", f"{CONTRACT}.DeviceHealthReport"]
        return registration.PluginInfo(type="DRAPlugin", name=flags.name, supported_versions=versions)

    async def NotifyRegistrationStatus(self, request, context):
        print("registered" if request.plugin_registered else f"refused: {request.error}", flush=True)
        return registration.RegistrationStatusResponse()


class Devices(api_services.DeviceDriverServicer, claim_services.DeviceHealthReportServicer):
    async def ListAndWatchDevices(self, request, context):
        async for failing in changes():
            devices = [device(number, number != failing) for number in range(flags.count)]
            # Without a name the pool is called after the node.
            yield api.ListAndWatchDevicesResponse(pools=[api.Pool(devices=devices)])

    async def WatchDeviceHealth(self, request, context):
        async for failing in changes():
            devices = [health(number, number != failing) for number in range(flags.count)]
            yield claims.WatchDeviceHealthResponse(devices=devices)


class Preparation(claim_services.DevicePreparationServicer):
    async def PrepareDevices(self, request, context):
        try:
            return claims.PrepareDevicesResponse(devices=[prepared(device) for device in request.devices])
        except ValueError as error:
            # The message reaches those who describe the pod.
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    async def UnprepareDevices(self, request, context):
        # Nothing is set up on the node, so there is nothing to undo. An accelerator that a claim had for monitoring
        # (admin_access) may be in use by other claims: a driver of real devices must not reset it.
        for device in request.devices:
            if not device.admin_access:
                print(f"free: {device.device}", flush=True)
        return claims.UnprepareDevicesResponse()


async def changes():
    """The number of the accelerator that fails, None where all are healthy; again after each change."""
    while True:
        tick, elapsed = divmod(time.monotonic() - STARTED_AT, flags.interval)
        yield tick // 2 % flags.count if tick % 2 == 1 else None
        await asyncio.sleep(flags.interval - elapsed)


def device(number, healthy):
    attributes = {"model": api.Attribute(string="beta" if number % 2 else "alpha"), "healthy": api.Attribute(bool=healthy)}
    return api.Device(name=f"accelerator-{number}", attributes=attributes, capacity={"memory": api.Capacity(value="40Gi")})


def health(number, healthy):
    message = "" if healthy else "simulated failure"
    return claims.DeviceHealth(device=f"accelerator-{number}", healthy=healthy, message=message)


def prepared(allocated):
    """What a container gets of a device: a variable that names it with its mode, and a device file."""
    mode = "exclusive"
    for configuration in allocated.configuration:
        mode = json.loads(configuration.parameters).get("mode", mode)
    if mode not in ("exclusive", "timeSliced"):
        raise ValueError(f'mode {json.dumps(mode)} is neither "exclusive" nor "timeSliced"')
    device, identity = allocated.device, {"request": allocated.request, "pool": allocated.pool, "share_id": allocated.share_id}
    file = claims.DeviceNode(path=f"/dev/{device}", host_path="/dev/null")
    edits = claims.ContainerEdits(env=[f"{device.upper().replace('-', '_')}={mode}"], device_nodes=[file])
    return claims.PreparedDevice(device=device, edits=edits, **identity)


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
    api_services.add_DeviceDriverServicer_to_server(Devices(), server)
    claim_services.add_DeviceHealthReportServicer_to_server(Devices(), server)
    claim_services.add_DevicePreparationServicer_to_server(Preparation(), server)
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
