"""Messages of the devices contract: nodekeeper.devices.v1alpha2."""

from nodekeeper_sdk.gen.nodekeeper.devices.v1alpha2.api_pb2 import *  # noqa: F403
from nodekeeper_sdk.gen.nodekeeper.devices.v1alpha2.preparation_pb2 import *  # noqa: F403
