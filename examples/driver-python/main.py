"""A sample device driver: streams simulated accelerators of this node, prepares them for pods, reports their health."""

import argparse
import asyncio
import json
import logging
import time

import nodekeeper_sdk
from nodekeeper_sdk import devices as api

STARTED_AT = time.monotonic()
options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--socket-dir", default="/var/lib/nodekeeper/plugins_registry", help="that the agent watches")
options.add_argument("--name", default="accelerators.example.com", help="the driver's name, by which claims select it")
options.add_argument("--count", type=int, default=8, help="how many accelerators")
options.add_argument("--interval", type=float, default=5, help="seconds between changes of the health of one")
flags = options.parse_args()


async def devices():
    async for failing in changes():
        # Without a name the pool is called after the node.
        yield [api.Pool(devices=[device(number, number != failing) for number in range(flags.count)])]


async def health():
    async for failing in changes():
        yield [device_health(number, number != failing) for number in range(flags.count)]


def prepare(claim):
    """Returns what a container gets of each device: a variable that names it with its mode, and a device file."""
    return [nodekeeper_sdk.prepared(device, edits_of(device)) for device in claim.devices]


def unprepare(claim):
    """Nothing is set up on the node, so there is nothing to undo. An accelerator that a claim had for monitoring
    (admin_access) may be in use by other claims: a driver of real devices must not reset it."""
    free = [device.device for device in claim.devices if not device.admin_access]
    logging.info("free: %s", ", ".join(free))


async def changes():
    """Yields the number of the accelerator that fails, None if all are healthy; again after each change."""
    while True:
        tick, elapsed = divmod(time.monotonic() - STARTED_AT, flags.interval)
        yield tick // 2 % flags.count if tick % 2 == 1 and flags.count else None
        await asyncio.sleep(flags.interval - elapsed)


def device(number, healthy):
    attributes = {"model": api.Attribute(string="beta" if number % 2 else "alpha"), "healthy": api.Attribute(bool=healthy)}
    return api.Device(name=f"accelerator-{number}", attributes=attributes, capacity={"memory": api.Capacity(value="40Gi")})


def device_health(number, healthy):
    message = "" if healthy else "simulated failure"
    return api.DeviceHealth(device=f"accelerator-{number}", healthy=healthy, message=message)


def edits_of(allocated):
    mode = "exclusive"
    for configuration in allocated.configuration:
        mode = json.loads(configuration.parameters).get("mode", mode)
    if mode not in ("exclusive", "timeSliced"):
        # The message reaches those who describe the pod.
        raise ValueError(f'mode {json.dumps(mode)} is neither "exclusive" nor "timeSliced"')
    variable, file = allocated.device.upper().replace("-", "_"), f"/dev/{allocated.device}"
    return api.ContainerEdits(env=[f"{variable}={mode}"], device_nodes=[api.DeviceNode(path=file, host_path="/dev/null")])


logging.basicConfig(level=logging.INFO)
driver = nodekeeper_sdk.serve_device_driver(
    name=flags.name, socket_dir=flags.socket_dir, devices=devices, health=health, prepare=prepare, unprepare=unprepare
)
nodekeeper_sdk.run(driver)
