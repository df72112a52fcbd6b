import contextlib
import os
import sys
import tempfile
import unittest
from unittest import mock

from nodekeeper_sdk import testing
from nodekeeper_sdk.testing import DevCluster

DRIVER = """
import sys
import nodekeeper_sdk
from nodekeeper_sdk.devices import Device, Pool

async def devices():
    yield [Pool(devices=[Device(name="machine-0"), Device(name="-wrong")])]

nodekeeper_sdk.run(nodekeeper_sdk.serve_device_driver(name="coffee.example.com", socket_dir=sys.argv[1], devices=devices))
"""


class ClusterTest(unittest.TestCase):
    @contextlib.contextmanager
    def agent(self, script):
        """A program in place of the agent."""
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "agent")
            with open(program, "w") as file:
                file.write(f"#!/bin/sh\n{script}\n")
            os.chmod(program, 0o755)
            with mock.patch.dict(os.environ, NODEKEEPER_AGENT=program):
                yield

    @unittest.skipUnless(os.environ.get("NODEKEEPER_AGENT"), "NODEKEEPER_AGENT is not set")
    def test_devices_of_a_driver_are_published(self):
        with DevCluster() as cluster:
            driver = cluster.start(sys.executable, "-c", DRIVER, cluster.plugin_directory)
            cluster.until("a device is published", lambda: cluster.published_devices("coffee.example.com"))
            self.assertEqual(cluster.published_devices("coffee.example.com"), ["machine-0"])
        self.assertEqual(driver.returncode, 0)

    def test_a_plugin_that_ends_ends_the_wait_and_one_that_ignores_sigterm_is_killed(self):
        cluster = "echo '  API server http://127.0.0.1:1'; echo '  agent http://127.0.0.1:2'; exec sleep 1000"
        with self.agent(cluster), mock.patch.object(testing, "_STOP_TIMEOUT", 0.5):
            with self.assertRaisesRegex(RuntimeError, r"exit 3.* ended with 3"), DevCluster() as cluster:
                stubborn = cluster.start("sh", "-c", "trap '' TERM; while :; do sleep 1; done")
                cluster.start("sh", "-c", "exit 3")
                cluster.until("never", lambda: False)
            self.assertIsNotNone(stubborn.returncode)

    def test_an_agent_that_does_not_start_is_named(self):
        with self.agent("echo no such option >&2; exit 2"), self.assertRaisesRegex(RuntimeError, "no such option"):
            DevCluster().__enter__()

    def test_an_agent_that_does_not_become_ready_is_named(self):
        silent = "echo still waiting >&2; exec sleep 1000"
        with self.agent(silent), mock.patch.object(testing, "_TIMEOUT", 0.5):
            with self.assertRaisesRegex(RuntimeError, "still waiting"):
                DevCluster().__enter__()
