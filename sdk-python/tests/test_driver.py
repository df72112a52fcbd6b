import asyncio
import threading
import time
import unittest

import grpc

from nodekeeper_sdk import devices, prepared, serve_device_driver
from nodekeeper_sdk.devices import Device, Pool
from tests.served import report_of, served

OLDER, NEWER = "nodekeeper.devices.v1alpha1", "nodekeeper.devices.v1alpha2"
REQUEST = devices.PrepareDevicesRequest(
    claim=devices.Claim(namespace="default", name="train", uid="u1", labels={"team": "vision"}),
    devices=[devices.AllocatedDevice(request="r", pool="node-1", device="gpu-0")],
)


def pools(*names):
    return [Pool(devices=[Device(name=name) for name in names])]


def watch(agent, package=NEWER):
    request = devices.ListAndWatchDevicesRequest()
    return agent.stream(f"/{package}.DeviceDriver/ListAndWatchDevices", request, devices.ListAndWatchDevicesResponse)


class RegistrationTest(unittest.IsolatedAsyncioTestCase):
    async def test_lists_what_it_serves_in_both_contracts(self):
        reports = {"health": report_of(), "status": report_of()}
        functions = {"prepare": list, "unprepare": list, "allocations": list, "problems": list, **reports}
        everything = [
            f"{OLDER}.DevicePreparation",
            f"{NEWER}.DevicePreparation",
            f"{OLDER}.DeviceHealthReport",
            f"{NEWER}.DeviceHealthReport",
            f"{NEWER}.DeviceStatusReport",
            f"{NEWER}.DeviceBinding",
            f"{NEWER}.DriverFeedback",
        ]
        feedback = f"{NEWER}.DriverFeedback"
        own = {"own_kubelet_plugin": True}
        for more, wanted in (({}, [feedback]), (own, [feedback, "v1.DRAPlugin"]), (functions, everything)):
            async with served(serve_device_driver, devices=report_of([]), **more) as plugin, plugin.connect() as agent:
                info = await agent.register()
                self.assertEqual((info.type, info.name, info.endpoint), ("DRAPlugin", "sample", ""))
                self.assertEqual(list(info.supported_versions), [OLDER, NEWER, *wanted])
                self.assertEqual(plugin.registered, 1)

    async def test_conflicting_options_are_refused(self):
        for wanted, options in (
            ("both prepare and unprepare", {"prepare": list}),
            ("status needs prepare", {"status": report_of()}),
            ("allocations needs status", {"allocations": list}),
            ("restore_claims has prepare", {"restore_claims": list}),
            ("its own kubelet plugin", {"prepare": list, "unprepare": list, "own_kubelet_plugin": True}),
            ("socket_dir is missing", {}),
        ):
            with self.assertRaisesRegex(ValueError, wanted):
                await serve_device_driver(name="sample", devices=report_of([]), **options)


class FeedbackTest(unittest.IsolatedAsyncioTestCase):
    async def test_problems_are_logged_once_without_a_function_for_them(self):
        def problem(device):
            return devices.Problem(error_id="NK1503", message="quarantined", pool="node-1", device=device)

        async with served(serve_device_driver, devices=report_of([])) as plugin, plugin.connect() as agent:
            with self.assertLogs("nodekeeper_sdk", "WARNING") as logged:
                for names in (["gpu-0"], ["gpu-0", "gpu-1"], ["gpu-1"]):
                    request = devices.ReportProblemsRequest(problems=[problem(name) for name in names])
                    await agent.call(f"/{NEWER}.DriverFeedback/ReportProblems", request, devices.ReportProblemsResponse)
        self.assertEqual(
            [record.getMessage() for record in logged.records],
            [
                "the agent reports a problem: NK1503 quarantined (node-1, gpu-0)",
                "the agent reports a problem: NK1503 quarantined (node-1, gpu-1)",
                "a problem has ended: NK1503 quarantined (node-1, gpu-0)",
            ],
        )


class ReportTest(unittest.IsolatedAsyncioTestCase):
    async def test_streams_of_both_contracts_have_the_latest_devices(self):
        values = asyncio.Queue()

        async def report():
            while True:
                yield await values.get()

        async with served(serve_device_driver, devices=report) as plugin, plugin.connect() as agent:
            values.put_nowait(pools("first"))
            for package in (OLDER, NEWER):
                stream = watch(agent, package)
                await stream.read()
                values.put_nowait(pools(package))
                response = await stream.read()
                self.assertEqual(response.pools[0].devices[0].name, package)

    async def test_a_failure_reaches_the_agent_and_the_report_starts_again(self):
        attempts, is_time = [], asyncio.Event()

        async def report():
            attempts.append(1)
            yield pools(f"gpu-{len(attempts)}")
            if len(attempts) == 1:
                await is_time.wait()
                raise OSError("the bus is gone: " + "x" * 1_000)

        with self.assertLogs("nodekeeper_sdk", "ERROR"):
            async with served(serve_device_driver, devices=report) as plugin, plugin.connect() as agent:
                stream = watch(agent)
                await stream.read()
                is_time.set()
                with self.assertRaises(grpc.aio.AioRpcError) as raised:
                    await stream.read()
                self.assertEqual(raised.exception.code(), grpc.StatusCode.INTERNAL)
                self.assertTrue(raised.exception.details().startswith("the bus is gone: x"))
                self.assertEqual(len(raised.exception.details()), 500)
                response = await watch(agent).read()
                self.assertEqual(response.pools[0].devices[0].name, "gpu-2")

    async def test_a_device_in_place_of_a_pool_is_reported_to_the_agent(self):
        with self.assertLogs("nodekeeper_sdk", "ERROR"):
            async with served(serve_device_driver, devices=report_of([Device(name="gpu-0")])) as plugin, plugin.connect() as agent:
                with self.assertRaisesRegex(grpc.aio.AioRpcError, "Pool"):
                    await watch(agent).read()

    async def test_streams_end_with_the_plugin(self):
        async with served(serve_device_driver, devices=report_of([])) as plugin, plugin.connect() as agent:
            stream = watch(agent)
            await stream.read()
            await plugin.stop()
            self.assertEqual(plugin.sockets(), [])
            with self.assertRaises(grpc.aio.AioRpcError) as raised:
                await stream.read()
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)


class ClaimsTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.unprepared, self.restored, self.problems = [], [], []

    def prepare(self, request):
        if request != REQUEST:
            raise ValueError('mode "warp" is unknown')
        time.sleep(0.01)  # It runs in a thread.
        return [prepared(device, devices.ContainerEdits(env=["GPU=0"])) for device in request.devices]

    async def unprepare(self, request):
        self.unprepared.append(request.claim.uid)

    def restore(self, claims):
        self.restored.extend(claims)
        return [claim.claim.uid for claim in claims]

    async def test_a_call_that_was_given_up_ends_before_the_next_one_for_its_claim(self):
        free, order = threading.Event(), []

        def prepare(request):
            order.append(f"prepare {request.claim.uid}")
            free.wait()
            order.append("prepared")
            return []

        def unprepare(request):
            order.append(f"unprepare {request.claim.uid}")

        functions = {"prepare": prepare, "unprepare": unprepare}
        async with served(serve_device_driver, devices=report_of([]), **functions) as plugin, plugin.connect() as agent:
            service = f"/{NEWER}.DevicePreparation"
            call = asyncio.ensure_future(agent.call(f"{service}/PrepareDevices", REQUEST, devices.PrepareDevicesResponse))
            while not order:
                await asyncio.sleep(0.01)
            call.cancel()
            request = devices.UnprepareDevicesRequest(claim=REQUEST.claim)
            next_call = agent.call(f"{service}/UnprepareDevices", request, devices.UnprepareDevicesResponse)
            next_call = asyncio.ensure_future(next_call)
            await asyncio.sleep(0.2)
            self.assertEqual(order, ["prepare u1"])
            free.set()
            await next_call
            self.assertEqual(order, ["prepare u1", "prepared", "unprepare u1"])

    async def test_status_begins_when_the_agent_asks_for_it(self):
        known, begun = [], []

        async def status():
            begun.append(list(known))
            yield [devices.DeviceStatus(claim_uid=uid, device="gpu-0") for uid in known]
            await asyncio.Event().wait()

        def restore_claims(claims):
            known.extend(each.claim.uid for each in claims)
            return []

        functions = {"prepare": list, "unprepare": list, "restore_claims": restore_claims, "status": status}
        async with served(serve_device_driver, devices=report_of([]), **functions) as plugin, plugin.connect() as agent:
            # The devices were sent, so that reports that begin at once have begun.
            await watch(agent).read()
            restore = devices.RestoreClaimsRequest(claims=[devices.PreparedClaim(claim=REQUEST.claim)])
            await agent.call(f"/{NEWER}.DevicePreparation/RestoreClaims", restore, devices.RestoreClaimsResponse)
            for _ in range(2):
                request, answer = devices.WatchDeviceStatusRequest(), devices.WatchDeviceStatusResponse
                response = await agent.stream(f"/{NEWER}.DeviceStatusReport/WatchDeviceStatus", request, answer).read()
                self.assertEqual([each.claim_uid for each in response.devices], ["u1"])
        self.assertEqual(begun, [["u1"]])

    async def test_allocations(self):
        told, failures = [], []

        def allocations(claims):
            told.append(claims)
            for failure in failures:
                raise failure

        options = {"devices": report_of([]), "status": report_of(), "allocations": allocations}
        async with served(serve_device_driver, **options) as plugin, plugin.connect() as agent:
            device = devices.AllocatedDevice(device="gpu-0", binding_conditions=["Attached"])
            claim = devices.ClaimToBind(claim=REQUEST.claim, devices=[device], allocated_at=1000)
            method, answer = f"/{NEWER}.DeviceBinding/ReportAllocations", devices.ReportAllocationsResponse
            await agent.call(method, devices.ReportAllocationsRequest(claims=[claim]), answer)
            failures.append(OSError("the switch is down"))
            with self.assertLogs("nodekeeper_sdk", "ERROR"), self.assertRaisesRegex(grpc.aio.AioRpcError, "the switch is down"):
                await agent.call(method, devices.ReportAllocationsRequest(), answer)
            self.assertEqual(told, [[claim], []])

    async def test_edits_that_an_older_agent_would_ignore_fail_its_call(self):
        gids = devices.ContainerEdits(additional_gids=[44])
        older = devices.ContainerEdits(env=["A=b"])
        of_claim = devices.PrepareDevicesResponse(edits=older)
        for answer, wanted in (
            ([devices.PreparedDevice(edits=gids)], "additional_gids"),
            (of_claim, "the whole claim"),
            ([devices.PreparedDevice(edits=older)], None),
        ):
            functions = {"prepare": lambda _, answer=answer: answer, "unprepare": list}
            async with served(serve_device_driver, devices=report_of([]), **functions) as plugin, plugin.connect() as agent:

                async def prepare(package):
                    path = f"/{package}.DevicePreparation/PrepareDevices"
                    return await agent.call(path, REQUEST, devices.PrepareDevicesResponse)

                await prepare(NEWER)
                if wanted is None:
                    await prepare(OLDER)
                    continue
                with self.assertLogs("nodekeeper_sdk", "ERROR"), self.assertRaisesRegex(grpc.aio.AioRpcError, wanted):
                    await prepare(OLDER)

    async def test_stop_iteration_fails_its_call(self):
        functions = {"prepare": lambda _: next(iter([])), "unprepare": list}
        async with served(serve_device_driver, devices=report_of([]), **functions) as plugin, plugin.connect() as agent:
            with self.assertLogs("nodekeeper_sdk", "ERROR"), self.assertRaisesRegex(grpc.aio.AioRpcError, "StopIteration"):
                await agent.call(f"/{NEWER}.DevicePreparation/PrepareDevices", REQUEST, devices.PrepareDevicesResponse)

    async def test_claims(self):
        functions = {"prepare": self.prepare, "unprepare": self.unprepare, "restore_claims": self.restore}
        options = {"devices": report_of(pools("gpu-0")), "problems": self.problems.extend, **functions}
        async with served(serve_device_driver, **options) as plugin, plugin.connect() as agent:
            restore = devices.RestoreClaimsRequest(claims=[devices.PreparedClaim(claim=REQUEST.claim, is_prepared=True)])
            response = await agent.call(f"/{NEWER}.DevicePreparation/RestoreClaims", restore, devices.RestoreClaimsResponse)
            self.assertEqual(list(response.prepare_again), ["u1"])
            self.assertTrue(self.restored[0].is_prepared)
            for package in (OLDER, NEWER):
                prepare, answer = f"/{package}.DevicePreparation/PrepareDevices", devices.PrepareDevicesResponse
                response = await agent.call(prepare, REQUEST, answer)
                [device] = response.devices
                self.assertEqual((device.request, device.pool, device.device), ("r", "node-1", "gpu-0"))
                self.assertEqual(list(device.edits.env), ["GPU=0"])
                with self.assertLogs("nodekeeper_sdk", "ERROR"), self.assertRaises(grpc.aio.AioRpcError) as raised:
                    await agent.call(prepare, devices.PrepareDevicesRequest(), answer)
                self.assertEqual(raised.exception.details(), 'mode "warp" is unknown')
            request = devices.UnprepareDevicesRequest(claim=REQUEST.claim)
            await agent.call(f"/{NEWER}.DevicePreparation/UnprepareDevices", request, devices.UnprepareDevicesResponse)
            self.assertEqual(self.unprepared, ["u1"])
            request = devices.ReportProblemsRequest(problems=[devices.Problem(error_id="NK1501")])
            await agent.call(f"/{NEWER}.DriverFeedback/ReportProblems", request, devices.ReportProblemsResponse)
            self.assertEqual([problem.error_id for problem in self.problems], ["NK1501"])
