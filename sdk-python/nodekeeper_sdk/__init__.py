"""Serves plugins of Nodekeeper, the node agent beside the kubelet: device drivers, reporter plugins, eviction plugins.

An author writes functions that return devices, contents or pods; the package has the socket, the registration with the
agent, the streams and the end of the process. Each of the `serve_*` coroutines serves until it is cancelled; `run` cancels
it at SIGINT and SIGTERM.

Each instance has its own socket, `<name>-<8 hexadecimal digits>.sock` in the directory that the agent watches. In a rolling
update with surge, the agent therefore registers the new instance before the old one ends. Sockets of instances that were
killed are removed at the start. A socket that disappears is served again.

`nodekeeper_sdk.testing` starts a development cluster for tests.
"""

from nodekeeper_sdk._plugin import Options, run
from nodekeeper_sdk.driver import prepared, serve_device_driver
from nodekeeper_sdk.eviction import serve_eviction_plugin
from nodekeeper_sdk.reporter import custom_node_resource, metadata, node, serve_reporter_plugin, spec, status

__all__ = [
    "Options",
    "custom_node_resource",
    "metadata",
    "node",
    "prepared",
    "run",
    "serve_device_driver",
    "serve_eviction_plugin",
    "serve_reporter_plugin",
    "spec",
    "status",
]
