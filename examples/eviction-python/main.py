"""A sample eviction plugin: watches a memory that it makes up, and requests the eviction of the pod that uses most."""

import argparse
import logging
import time

import nodekeeper_sdk
from nodekeeper_sdk import evictions

# Pods with this label leak, for this plugin.
SAMPLE_LABEL = "example.com/sample"
FIRST_USE_MIB = 64
options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--socket-dir", default="/var/lib/nodekeeper/plugins_registry", help="that the agent watches")
options.add_argument("--name", default="example-eviction", help="the plugin's name")
options.add_argument("--limit", type=float, default=1600, help="what all sample pods together may use, MiB")
options.add_argument("--leak", type=float, default=8, help="what every sample pod uses more with each second, MiB")
flags = options.parse_args()


def threshold_met(pods):
    observed = sum(use(pod) for pod in samples(pods))
    is_met = observed > flags.limit
    return evictions.ThresholdMetResponse(
        met_type=evictions.HARD_MET if is_met else evictions.NOT_MET,
        eviction_scope="sample-memory",
        observed_value=observed,
        threshold_value=flags.limit,
        threshold_operator=evictions.GREATER_THAN,
        condition=evictions.Condition(
            condition_type=evictions.NODE_CONDITION,
            condition_name="SamplePressure",
            effects=["PreferNoSchedule"],
            met_condition=is_met,
        ),
    )


def top_pods(pods, _top_n, _scope):
    """Returns the pods to evict, the one that uses most first."""
    return sorted(samples(pods), key=use, reverse=True)


def samples(pods):
    return [pod for pod in pods if pod.metadata.labels.get(SAMPLE_LABEL) == "true"]


def use(pod):
    started_at = pod.status.startTime.seconds
    return FIRST_USE_MIB + (flags.leak * (time.time() - started_at) if started_at else 0)


logging.basicConfig(level=logging.INFO)
plugin = nodekeeper_sdk.serve_eviction_plugin(
    name=flags.name, socket_dir=flags.socket_dir, threshold_met=threshold_met, top_pods=top_pods
)
nodekeeper_sdk.run(plugin)
