"""A sample eviction plugin: watches a memory that it makes up, and requests the eviction of the pod that uses most."""

import argparse
import asyncio
import contextlib
import glob
import os
import secrets
import signal
import socket
import stat
import time

import grpc
from evictionplugin.v1alpha1 import api_pb2 as api
from evictionplugin.v1alpha1 import api_pb2_grpc as api_services
from k8s.core.v1 import api_pb2 as core
from pluginregistration.v1 import api_pb2 as registration
from pluginregistration.v1 import api_pb2_grpc as registration_services

# Pods with this label leak, for this plugin.
SAMPLE_LABEL = "example.com/sample"
FIRST_USE_MIB = 64
options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--socket-dir", default="/var/lib/nodekeeper/plugins_registry", help="that the agent watches")
options.add_argument("--name", default="example-eviction", help="the plugin's name")
options.add_argument("--limit", type=float, default=1600, help="what all sample pods together may use, MiB")
options.add_argument("--leak", type=float, default=8, help="what every sample pod uses more with each second, MiB")
flags = options.parse_args()


class Registration(registration_services.RegistrationServicer):
    async def GetInfo(self, request, context):
        return registration.PluginInfo(type="EvictionPlugin", name=flags.name, supported_versions=["v1alpha1"])

    async def NotifyRegistrationStatus(self, request, context):
        print("registered" if request.plugin_registered else f"refused: {request.error}", flush=True)
        return registration.RegistrationStatusResponse()


# What is not implemented, here GetEvictPods and GetToken, is answered with UNIMPLEMENTED: there is nothing to report.
class Eviction(api_services.EvictionPluginServicer):
    async def ThresholdMet(self, request, context):
        observed = sum(use(pod) for pod in samples(request.active_pods))
        is_met = observed > flags.limit
        return api.ThresholdMetResponse(
            met_type=api.HARD_MET if is_met else api.NOT_MET,
            eviction_scope="sample-memory",
            observed_value=observed,
            threshold_value=flags.limit,
            threshold_operator=api.GREATER_THAN,
            condition=api.Condition(
                condition_type=api.NODE_CONDITION,
                condition_name="SamplePressure",
                effects=["PreferNoSchedule"],
                met_condition=is_met,
            ),
        )

    async def GetTopEvictionPods(self, request, context):
        # The pod that uses most first; topN is 0 if there is no limit.
        pods = sorted(samples(request.active_pods), key=use, reverse=True)
        chosen = pods[: request.topN or None]
        return api.GetTopEvictionPodsResponse(target_pods=[pod.SerializeToString() for pod in chosen])


def samples(encoded):
    pods = (core.Pod.FromString(each) for each in encoded)
    return [pod for pod in pods if pod.metadata.labels.get(SAMPLE_LABEL) == "true"]


def use(pod):
    started_at = pod.status.startTime.seconds
    return FIRST_USE_MIB + (flags.leak * (time.time() - started_at) if started_at else 0)


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
    # Room for a few thousand pods in a request.
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 * 1024 * 1024)])
    registration_services.add_RegistrationServicer_to_server(Registration(), server)
    api_services.add_EvictionPluginServicer_to_server(Eviction(), server)
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
