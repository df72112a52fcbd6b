"""A sample reporter plugin: reports simulated widgets of this node, and changes how many can be used."""

import argparse
import asyncio
import itertools
import logging

import nodekeeper_sdk
from nodekeeper_sdk import custom_node_resource, metadata, node, status

WIDGETS = "example.nodekeeper.dev/widgets"
TOTAL = 16
options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--socket-dir", default="/var/lib/nodekeeper/plugins_registry", help="that the agent watches")
options.add_argument("--name", default="example-reporter", help="the plugin's name")
options.add_argument("--interval", type=float, default=1, help="seconds between changes of the number of usable widgets")
flags = options.parse_args()


async def report():
    """Yields everything that the plugin reports, again after each change."""
    for tick in itertools.count():
        resources = {"capacity": {WIDGETS: str(TOTAL)}, "allocatable": {WIDGETS: str(TOTAL - tick % 5)}}
        labels = {"example.nodekeeper.dev/has-widgets": "true"}
        yield [custom_node_resource(status("resources", resources)), node(metadata("labels", labels))]
        await asyncio.sleep(flags.interval)


logging.basicConfig(level=logging.INFO)
nodekeeper_sdk.run(nodekeeper_sdk.serve_reporter_plugin(name=flags.name, socket_dir=flags.socket_dir, report=report))
