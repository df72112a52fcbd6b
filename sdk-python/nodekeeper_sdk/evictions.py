"""Messages of eviction plugins: evictionplugin.v1alpha1, and the parts of core/v1 Pods that the agent's proto files describe."""

from nodekeeper_sdk.gen.evictionplugin.v1alpha1.api_pb2 import *  # noqa: F403
from nodekeeper_sdk.gen.k8s.core.v1.api_pb2 import Pod  # noqa: F401
