import logging
import unittest

import grpc

from nodekeeper_sdk import devices, serve_device_driver
from tests import test_driver as driver
from tests.served import report_of, served


class LogTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_failed_call_is_logged_by_the_log_of_the_options(self):
        functions = {"prepare": lambda _: 1 / 0, "unprepare": list, "log": logging.getLogger("own")}
        async with served(serve_device_driver, devices=report_of([]), **functions) as plugin, plugin.connect() as agent:
            with self.assertLogs("own", "ERROR") as logged, self.assertNoLogs("nodekeeper_sdk"):
                with self.assertRaises(grpc.aio.AioRpcError):
                    await agent.call(f"/{driver.NEWER}.DevicePreparation/PrepareDevices", driver.REQUEST, devices.PrepareDevicesResponse)
            self.assertIn("PrepareDevices failed", logged.output[0])
