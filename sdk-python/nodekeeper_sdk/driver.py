"""Device drivers."""

import asyncio

from nodekeeper_sdk import devices as api
from nodekeeper_sdk._plugin import Kind, Options, serve
from nodekeeper_sdk._report import Turns, call

# Packages in which a driver serves the same: an older agent knows only the first, which has no status and feedback.
_OLDER = "nodekeeper.devices.v1alpha1"
_NEWER = "nodekeeper.devices.v1alpha2"
_BOTH = (_OLDER, _NEWER)


async def serve_device_driver(
    *,
    devices,
    health=None,
    status=None,
    allocations=None,
    prepare=None,
    unprepare=None,
    restore_claims=None,
    problems=None,
    own_kubelet_plugin=False,
    **options,
):
    """Serves a driver until it is cancelled. The agent publishes its devices as ResourceSlices and serves as the kubelet's DRA
    plugin on the driver's behalf. The driver needs no access to the API server. Raises ValueError if options conflict.

    A report is a function without arguments that returns an asynchronous iterator, and yields everything that it reports,
    again after each change. If it ends, its last value stays. If it raises, the agent shows the error's message until the next
    value, and the report is started again after 0.5 to 30 s. Other functions may be coroutines; those that are not run in
    threads. Calls for different claims overlap, those for one claim never do.

    devices:        report of lists of `devices.Pool`. An empty list removes all devices.
    health:         report of lists of `devices.DeviceHealth`, of all devices.
    status:         report of lists of `devices.DeviceStatus`, of all allocated devices, for their ResourceClaims. A device that
                    is left out has no status. Begins when the agent asks for it, after restore_claims. Needs prepare and
                    unprepare, or allocations, which get the UIDs of claims.
    allocations:    gets a list of `devices.ClaimToBind`: all claims that have devices with binding conditions and are not
                    prepared yet, from when a pod waits to be bound to this node until `prepare` has succeeded, or the claim is
                    deallocated. Called when the agent connects and after each change, and again if it raises. A claim that is
                    neither in the last list nor prepared was deallocated: the driver undoes what it did for it. Must return
                    within 10 s. Needs status, which reports the conditions.
    prepare:        gets a `devices.PrepareDevicesRequest` and returns a list of `devices.PreparedDevice`, or a
                    `devices.PrepareDevicesResponse`. Idempotent. The message of its error reaches the Events of the pod.
    unprepare:      gets a `devices.UnprepareDevicesRequest`. Idempotent; also called for claims that were never prepared.
    restore_claims: gets a list of `devices.PreparedClaim`, all recorded claims, each time the agent connects if there are
                    any, so that the driver needs no checkpoint of its own. Returns the UIDs of prepared claims whose preparation is lost:
                    they are prepared again. Without it, none are.
    problems:       gets a list of `devices.Problem`: what the agent refuses of the driver, whenever it changes. Without it, each
                    new problem is logged as a warning, and once more when it has ended.
    own_kubelet_plugin: the driver registers with the kubelet itself, and the agent only publishes its devices.
    options:        see `Options`.
    """
    if (prepare is None) != (unprepare is None):
        raise ValueError("a driver has both prepare and unprepare, or neither")
    if restore_claims and not prepare:
        raise ValueError("a driver with restore_claims has prepare and unprepare")
    if status and not prepare and not allocations:
        raise ValueError(
            "status needs prepare and unprepare, or allocations: it is of devices that are prepared, or wait to be bound"
        )
    if allocations and not status:
        raise ValueError("allocations needs status, which reports the binding conditions")
    if own_kubelet_plugin and (prepare or health or status):
        raise ValueError("a driver with its own kubelet plugin prepares devices and reports their health and status there")
    kind = Kind("DRAPlugin", [_OLDER, _NEWER])
    pools = kind.report(devices, api.ListAndWatchDevicesResponse, "pools")
    for package in _BOTH:
        kind.stream(f"{package}.DeviceDriver", "ListAndWatchDevices", pools)
    if prepare:
        _add_preparation(kind, prepare, unprepare, restore_claims)
    if health:
        latest = kind.report(health, api.WatchDeviceHealthResponse, "devices")
        for service in _names(kind, "DeviceHealthReport", _BOTH):
            kind.stream(service, "WatchDeviceHealth", latest)
    if status:
        asked = asyncio.Event()
        latest = kind.report(_after(asked, status), api.WatchDeviceStatusResponse, "devices")
        for service in _names(kind, "DeviceStatusReport", [_NEWER]):
            kind.stream(service, "WatchDeviceStatus", latest, asked.set)
    if allocations:
        _add_binding(kind, allocations)
    options = Options(**options)
    _add_feedback(kind, problems or _problem_log(options.log))
    if own_kubelet_plugin:
        kind.versions.append("v1.DRAPlugin")
    await serve(options, kind)


def prepared(allocated, edits=None):
    """Returns the answer for an allocated device: what containers need to use it. Without edits: nothing."""
    identity = {name: getattr(allocated, name) for name in ("request", "pool", "device", "share_id")}
    return api.PreparedDevice(edits=edits, **identity)


def _names(kind, service, packages):
    """Lists the service among the versions of the registration, and returns the names that it is served under."""
    names = [f"{package}.{service}" for package in packages]
    kind.versions.extend(names)
    return names


def _after(begin, report):
    """Returns a report that begins once the event is set."""

    async def later():
        await begin.wait()
        async for contents in report():
            yield contents

    return later


def _add_preparation(kind, prepare, unprepare, restore_claims):
    turns = Turns()

    async def answer_prepare(request):
        answer = await turns.call(request.claim.uid, prepare, request)
        return answer if isinstance(answer, api.PrepareDevicesResponse) else api.PrepareDevicesResponse(devices=answer)

    async def answer_older(request):
        answer = await answer_prepare(request)
        _check_older_agent(answer)
        return answer

    async def answer_unprepare(request):
        await turns.call(request.claim.uid, unprepare, request)
        return api.UnprepareDevicesResponse()

    async def answer_restore(request):
        again = await call(restore_claims, list(request.claims)) if restore_claims else []
        return api.RestoreClaimsResponse(prepare_again=again)

    for service in _names(kind, "DevicePreparation", _BOTH):
        is_older = service.startswith(f"{_OLDER}.")
        answer = answer_older if is_older else answer_prepare
        kind.unary(service, "PrepareDevices", api.PrepareDevicesRequest, answer)
        kind.unary(service, "UnprepareDevices", api.UnprepareDevicesRequest, answer_unprepare)
        kind.unary(service, "RestoreClaims", api.RestoreClaimsRequest, answer_restore)


def _check_older_agent(answer):
    """Raises if the answer has edits that an agent of v1alpha1 would ignore: the container would start without them."""
    newer = ["edits of the whole claim"] if answer.HasField("edits") else []
    for device in answer.devices:
        fields = (field.name for field, _ in device.edits.ListFields())
        newer += [name for name in fields if name in ("additional_gids", "intel_rdt", "net_devices")]
    if newer:
        raise ValueError(
            f"the driver's answer has {newer[0]}, which this Nodekeeper agent does not know: "
            f"update the agent to one of {_NEWER}"
        )


def _add_binding(kind, allocations):
    turns = Turns()

    async def answer(request):
        await turns.call("", allocations, list(request.claims))
        return api.ReportAllocationsResponse()

    for service in _names(kind, "DeviceBinding", [_NEWER]):
        kind.unary(service, "ReportAllocations", api.ReportAllocationsRequest, answer)


def _add_feedback(kind, problems):
    async def answer(request):
        await call(problems, list(request.problems))
        return api.ReportProblemsResponse()

    for service in _names(kind, "DriverFeedback", [_NEWER]):
        kind.unary(service, "ReportProblems", api.ReportProblemsRequest, answer)


def _problem_log(log):
    known = set()

    async def handle(problems):
        nonlocal known
        present = {(each.error_id, each.message, each.pool, each.device, each.claim_uid) for each in problems}
        for what, changed in (("the agent reports a problem", present - known), ("a problem has ended", known - present)):
            for error_id, message, pool, device, claim_uid in sorted(changed):
                about = ", ".join(filter(None, (pool, device, claim_uid)))
                log.warning("%s: %s %s (%s)", what, error_id, message, about)
        known = present

    return handle
