"""Eviction plugins."""

from nodekeeper_sdk import evictions as api
from nodekeeper_sdk._plugin import Kind, Options, serve
from nodekeeper_sdk._report import call
from nodekeeper_sdk.gen.nodekeeper.eviction.v1alpha1 import api_pb2 as rounds

_SERVICE = "evictionplugin.v1alpha1.EvictionPlugin"
# Enough for a few thousand pods of typical size.
_MAX_OFFER_BYTES = 64 * 1024 * 1024


async def serve_eviction_plugin(
    *, threshold_met=None, top_pods=None, evict_pods=None, token=None, round_requests=None, **options
):
    """Serves an eviction plugin until it is cancelled. In each round the agent asks it, decides, and evicts.

    A function that is None, or returns None, requests nothing. Those that are not coroutines run in threads. Pods are decoded as far as the
    agent's proto files describe them.

    threshold_met:  called once per round with a list of `evictions.Pod`; returns an `evictions.ThresholdMetResponse`.
    top_pods:       called when the threshold has been met for its grace period, with a list of pods, the largest number of pods
                    to return (0: no limit) and the scope. Returns the pods to evict, in the order of eviction.
    evict_pods:     called once per round with a list of pods; returns an `evictions.GetEvictPodsResponse` with pods to evict
                    regardless of thresholds.
    token:          returns the token of the plugin's service account, for agents that require one. Tokens expire, so it is
                    called again at each registration.
    round_requests: an `asyncio.Queue` of reasons for which the plugin requests a round before the end of the period.
                    The latest pending reason requests one round for all of them.
    options:        see `Options`.
    """
    kind = Kind("EvictionPlugin", ["v1alpha1"], _MAX_OFFER_BYTES)

    # What is not served is answered with UNIMPLEMENTED: there is nothing to report.
    async def answer_threshold(request):
        return await call(threshold_met, _pods(request)) or api.ThresholdMetResponse()

    async def answer_top(request):
        pods = await call(top_pods, _pods(request), request.topN, request.eviction_scope)
        chosen = list(pods or [])[: request.topN or None]
        return api.GetTopEvictionPodsResponse(target_pods=[pod.SerializeToString() for pod in chosen])

    async def answer_evict(request):
        return await call(evict_pods, _pods(request)) or api.GetEvictPodsResponse()

    async def answer_token(_request):
        return api.GetTokenResponse(token=await call(token))

    async def answer_round(_request):
        reason = await round_requests.get()
        # One round serves all pending requests.
        while not round_requests.empty():
            reason = round_requests.get_nowait()
        return rounds.RoundRequest(reason=reason)

    if threshold_met:
        kind.unary(_SERVICE, "ThresholdMet", api.GetThresholdMetRequest, answer_threshold)
    if top_pods:
        kind.unary(_SERVICE, "GetTopEvictionPods", api.GetTopEvictionPodsRequest, answer_top)
    if evict_pods:
        kind.unary(_SERVICE, "GetEvictPods", api.GetEvictPodsRequest, answer_evict)
    if token:
        kind.unary(_SERVICE, "GetToken", api.Empty, answer_token)
    if round_requests is not None:
        kind.unary("nodekeeper.eviction.v1alpha1.RoundRequests", "WaitForRequest", rounds.WaitForRequestRequest, answer_round)
    await serve(Options(**options), kind)


def _pods(request):
    return [api.Pod.FromString(each) for each in request.active_pods]
