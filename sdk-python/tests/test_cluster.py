import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from nodekeeper_sdk.testing import DevCluster, until

DRIVER = """
import sys
import nodekeeper_sdk
from nodekeeper_sdk.devices import Device, Pool

async def devices():
    yield [Pool(devices=[Device(name="machine-0"), Device(name="-wrong")])]

nodekeeper_sdk.run(nodekeeper_sdk.serve_device_driver(name="coffee.example.com", socket_dir=sys.argv[1], devices=devices))
"""


class ClusterTest(unittest.TestCase):
    @unittest.skipUnless(os.environ.get("NODEKEEPER_AGENT"), "NODEKEEPER_AGENT is not set")
    def test_devices_of_a_driver_are_published(self):
        with DevCluster() as cluster:
            driver = subprocess.Popen([sys.executable, "-c", DRIVER, cluster.plugin_directory])
            try:
                until("a device is published", lambda: cluster.published_devices("coffee.example.com"))
                self.assertEqual(cluster.published_devices("coffee.example.com"), ["machine-0"])
            finally:
                driver.terminate()
                self.assertEqual(driver.wait(60), 0)

    def test_an_agent_that_does_not_start_is_named(self):
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "agent")
            with open(program, "w") as file:
                file.write("#!/bin/sh\necho no such option >&2\nexit 2\n")
            os.chmod(program, 0o755)
            with mock.patch.dict(os.environ, NODEKEEPER_AGENT=program):
                with self.assertRaisesRegex(RuntimeError, "no such option"):
                    DevCluster().__enter__()
