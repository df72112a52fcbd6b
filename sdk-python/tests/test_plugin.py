import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from unittest import mock

import grpc

from nodekeeper_sdk import (
    Options,
    custom_node_resource,
    evictions,
    serve_eviction_plugin,
    serve_reporter_plugin,
    status,
)
from nodekeeper_sdk import _latest, _registration, _socket
from nodekeeper_sdk.gen.nodekeeper.eviction.v1alpha1 import api_pb2 as rounds
from nodekeeper_sdk.gen.reporterplugin.v1alpha1 import api_pb2 as reports
from tests.served import report_of, served

CONTENT = [custom_node_resource(status("resources", {"widgets": 4}))]
REPORTER = "/reporterplugin.v1alpha1.ReporterPlugin"
EVICTION = "/evictionplugin.v1alpha1.EvictionPlugin"


class SocketTest(unittest.IsolatedAsyncioTestCase):
    async def test_is_of_the_instance_and_removed_at_the_end(self):
        async with served(serve_reporter_plugin, report=report_of(CONTENT)) as plugin, plugin.connect():
            [name] = plugin.sockets()
            self.assertRegex(name, r"^sample-[0-9a-f]{8}\.sock$")
            self.assertEqual(os.stat(os.path.join(plugin.directory, name)).st_mode & 0o777, 0o600)
            await plugin.stop()
            self.assertEqual(os.listdir(plugin.directory), [])

    async def test_is_served_again_when_it_disappears(self):
        async with served(serve_reporter_plugin, report=report_of(CONTENT)) as plugin:
            async with plugin.connect() as agent:
                await agent.register()
            with self.assertLogs("nodekeeper_sdk", "WARNING"):
                shutil.rmtree(plugin.directory)
                async with plugin.connect() as agent:
                    await agent.register()
                    self.assertEqual(plugin.registered, 2)
                    response = await agent.call(f"{REPORTER}/GetReportContent", reports.Empty(), reports.GetReportContentResponse)
            self.assertEqual(list(response.content), CONTENT)
            self.assertEqual(response.content[0].field[0].value, b'{"widgets": 4}')

    async def test_of_another_process_at_its_path_ends_the_plugin(self):
        async with served(serve_reporter_plugin, report=report_of(CONTENT)) as plugin, plugin.connect():
            path = os.path.join(plugin.directory, plugin.sockets()[0])
            with socket.socket(socket.AF_UNIX) as other:
                # Beside the plugin's socket, and moved there: there is always a file.
                other.bind(f"{path}.other")
                other.listen()
                os.rename(f"{path}.other", path)
                with self.assertRaisesRegex(ValueError, "another process took the socket"):
                    await plugin.task
                self.assertTrue(os.path.exists(path))

    async def test_a_path_that_cannot_be_served_is_refused(self):
        with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as other:
            path, file = os.path.join(directory, "sample.sock"), os.path.join(directory, "file")
            other.bind(path)
            other.listen()
            open(file, "w").close()
            for wanted, options in (
                ("another process serves", {"socket_path": path}),
                ("at most 107", {"socket_path": "/tmp/" + "x" * 110}),
                ("exists and is not a socket", {"socket_path": file}),
                ("1 to 253 characters", {"socket_dir": directory, "name": "-sample"}),
            ):
                with self.assertRaisesRegex(ValueError, wanted):
                    await serve_reporter_plugin(report=report_of(CONTENT), **{"name": "sample", **options})

    def test_only_those_of_killed_instances_are_removed(self):
        with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:

            def serve(name, backlog=1):
                server = stack.enter_context(socket.socket(socket.AF_UNIX))
                server.bind(os.path.join(directory, name))
                server.listen(backlog)
                return server

            for name in ("sample-dead0000.sock", "sample-two-dead0000.sock", "sample-other.sock"):
                serve(name).close()
            serve("sample-11fe0000.sock")
            # A stopped process does not accept: its backlog is full.
            serve("sample-f0000000.sock", 0)
            with contextlib.suppress(BlockingIOError):
                while True:
                    client = stack.enter_context(socket.socket(socket.AF_UNIX))
                    client.setblocking(False)
                    client.connect(os.path.join(directory, "sample-f0000000.sock"))
            open(os.path.join(directory, "sample-f11e0000.sock"), "w").close()
            os.symlink(os.path.join(directory, "nothing"), os.path.join(directory, "sample-90000000.sock"))
            _socket.remove_stale_sockets(directory, "sample")
            wanted = ["11fe0000", "90000000", "f0000000", "f11e0000", "other", "two-dead0000"]
            self.assertEqual(sorted(os.listdir(directory)), [f"sample-{each}.sock" for each in wanted])


class EndTest(unittest.TestCase):
    def test_sigterm_ends_the_process_without_an_error(self):
        program = """
import asyncio, sys
from nodekeeper_sdk import run, serve_reporter_plugin
async def report():
    yield []
    await asyncio.Event().wait()
run(serve_reporter_plugin(report=report, name="sample", socket_dir=sys.argv[1], on_serving=lambda path: print(path, flush=True)))
"""
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, "-c", program, directory]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                self.assertTrue(re.search(r"sample-\w{8}\.sock$", process.stdout.readline()))
                process.send_signal(signal.SIGTERM)
                self.assertEqual((process.wait(60), process.stderr.read()), (0, ""))
            self.assertEqual(os.listdir(directory), [])


class UnregisteredTest(unittest.TestCase):
    def test_says_why_once(self):
        for wanted, change in (
            ("the directory was missing", {"was_missing": True}),
            ("plugins.allowedUids", {}),
            ("has not reported an outcome", {"was_asked": True}),
            ("refused the registration: duplicate", {"refusal": "duplicate"}),
            (None, {"is_registered": True}),
        ):
            log = mock.Mock()
            kind = mock.Mock(plugin_type="ReporterPlugin", versions=[])
            registration = _registration.Registration("/tmp/s.sock", Options(name="s", socket_dir="/tmp", log=log), kind)
            registration.served_at = time.monotonic() - _registration.WARN_AFTER
            vars(registration).update(change)
            registration.warn_if_unregistered()
            registration.warn_if_unregistered()
            texts = [call.args[0] % call.args[1:] for call in log.warning.call_args_list]
            self.assertEqual(len(texts), 1 if wanted else 0)
            if wanted:
                self.assertIn(wanted, texts[0])


class LatestTest(unittest.IsolatedAsyncioTestCase):
    async def test_the_traceback_of_a_failure_does_not_grow(self):
        latest = _latest.Latest()
        latest.fail("the bus is gone")

        async def length():
            try:
                await latest.get()
            except _latest.ReportFailed as error:
                return len(traceback.extract_tb(error.__traceback__))

        self.assertEqual(await length(), await length())


class EvictionTest(unittest.IsolatedAsyncioTestCase):
    async def test_what_is_not_served_is_unimplemented_and_none_requests_nothing(self):
        functions = {"threshold_met": lambda pods: None, "top_pods": lambda *_: None}
        async with served(serve_eviction_plugin, **functions) as plugin, plugin.connect() as agent:
            request = evictions.GetThresholdMetRequest()
            response = await agent.call(f"{EVICTION}/ThresholdMet", request, evictions.ThresholdMetResponse)
            self.assertEqual(response, evictions.ThresholdMetResponse())
            request = evictions.GetTopEvictionPodsRequest(topN=1)
            response = await agent.call(f"{EVICTION}/GetTopEvictionPods", request, evictions.GetTopEvictionPodsResponse)
            self.assertEqual(list(response.target_pods), [])
            for method, request, response in (
                ("GetEvictPods", evictions.GetEvictPodsRequest(), evictions.GetEvictPodsResponse),
                ("GetToken", evictions.Empty(), evictions.GetTokenResponse),
            ):
                with self.assertRaises(grpc.aio.AioRpcError) as raised:
                    await agent.call(f"{EVICTION}/{method}", request, response)
                self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    async def test_answers_of_a_round(self):
        requests = asyncio.Queue()
        options = {
            "threshold_met": lambda pods: evictions.ThresholdMetResponse(met_type=evictions.HARD_MET, observed_value=len(pods)),
            "top_pods": lambda pods, _top_n, _scope: pods,
            "evict_pods": lambda pods: None,
            "token": lambda: "secret",
            "round_requests": requests,
        }
        async with served(serve_eviction_plugin, **options) as plugin, plugin.connect() as agent:
            await agent.register()
            pod = evictions.Pod()
            # More than gRPC's 4 MiB.
            pod.metadata.annotations["big"] = "x" * (5 << 20)
            pods = [pod.SerializeToString(), b""]
            request = evictions.GetThresholdMetRequest(active_pods=pods)
            response = await agent.call(f"{EVICTION}/ThresholdMet", request, evictions.ThresholdMetResponse)
            self.assertEqual((response.met_type, response.observed_value), (evictions.HARD_MET, 2))
            request = evictions.GetTopEvictionPodsRequest(active_pods=[b"", b""], topN=1)
            response = await agent.call(f"{EVICTION}/GetTopEvictionPods", request, evictions.GetTopEvictionPodsResponse)
            self.assertEqual(list(response.target_pods), [b""])
            response = await agent.call(f"{EVICTION}/GetEvictPods", evictions.GetEvictPodsRequest(), evictions.GetEvictPodsResponse)
            self.assertEqual(list(response.evict_pods), [])
            response = await agent.call(f"{EVICTION}/GetToken", evictions.Empty(), evictions.GetTokenResponse)
            self.assertEqual(response.token, "secret")
            for reason in ("swap is in use", "free memory fell below 500 MiB"):
                requests.put_nowait(reason)
            method = "/nodekeeper.eviction.v1alpha1.RoundRequests/WaitForRequest"
            response = await agent.call(method, rounds.WaitForRequestRequest(), rounds.RoundRequest)
            self.assertEqual(response.reason, "free memory fell below 500 MiB")
            self.assertTrue(requests.empty())
