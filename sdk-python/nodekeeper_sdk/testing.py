"""A development cluster for tests of plugins: an API server in memory, a simulated container runtime, and the agent.

It runs `nodekeeper dev` of the npm package `nodekeeper`, which needs Node 24, or the program that the environment variable
NODEKEEPER_AGENT names.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

NODE_NAME = "dev-node"
_TIMEOUT = 180
_STOP_TIMEOUT = 15
_ADDRESS = re.compile(r"  (API server|agent) +(http://\S+)")


class DevCluster(contextlib.AbstractContextManager):
    """A cluster that runs until the end of the `with` block. Raises RuntimeError if it does not start.

    plugin_directory: the directory that the agent watches: `socket_dir` of a plugin.
    api_server:       URL of the API server.
    agent:            URL of the agent's status server.
    """

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="nk-"))
            problems = stack.enter_context(tempfile.TemporaryFile("w+"))
            self.plugin_directory = os.path.join(directory, "plugins_registry")
            options = ["--data-dir", directory, "--node-name", NODE_NAME, "--server", "127.0.0.1:0", "--no-plugin"]
            # npx does not forward signals.
            process = subprocess.Popen(
                [*_program(), "dev", *options], stdout=subprocess.PIPE, stderr=problems, text=True, start_new_session=True
            )
            stack.callback(process.stdout.close)
            stack.callback(_stop, process)
            # Ends the wait for the addresses.
            timer = threading.Timer(_TIMEOUT, _signal, [process, signal.SIGKILL])
            timer.start()
            addresses = _addresses(process.stdout)
            timer.cancel()
            if len(addresses) < 2:
                process.wait()
                problems.seek(0)
                raise RuntimeError(f"nodekeeper dev ended without a cluster, or has none after {_TIMEOUT} s: {problems.read()}")
            self.api_server, self.agent = addresses["API server"], addresses["agent"]
            # What follows is discarded.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            self._plugins = []
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._stack.close()

    def start(self, *command):
        """Starts a plugin, which gets SIGTERM at the end of the `with` block. Returns its `subprocess.Popen`."""
        plugin = subprocess.Popen(command, start_new_session=True)
        self._stack.callback(_stop, plugin)
        self._plugins.append(plugin)
        return plugin

    def until(self, what, look):
        """As the function `until`. Raises RuntimeError if a plugin that was started has ended."""

        def look_beside_plugins():
            for plugin in self._plugins:
                if plugin.poll() is not None:
                    raise RuntimeError(f"{' '.join(plugin.args)} ended with {plugin.returncode}")
            return look()

        return until(what, look_beside_plugins)

    def published_devices(self, driver):
        """Returns the names of the devices in the driver's ResourceSlices."""
        slices = read(f"{self.api_server}/apis/resource.k8s.io/v1/resourceslices")["items"]
        specs = (each["spec"] for each in slices if each["spec"]["driver"] == driver)
        return [device["name"] for spec in specs for device in spec.get("devices", [])]


def read(url):
    """Returns the JSON of an address: the API server's objects, such as `api_server + "/api/v1/nodes"`, or the agent's state,
    such as `agent + "/api/v1/plugins"`."""
    with urllib.request.urlopen(url, timeout=30) as response:
        return json.load(response)


def until(what, look):
    """Waits for a true result and returns it; an OSError is not yet one. Raises TimeoutError after three minutes."""
    deadline, trouble = time.monotonic() + _TIMEOUT, None
    while time.monotonic() < deadline:
        try:
            if result := look():
                return result
        except OSError as error:
            trouble = error
        time.sleep(0.05)
    raise TimeoutError(f"waited without success: {what}") from trouble


def _program():
    agent = os.environ.get("NODEKEEPER_AGENT")
    if not agent:
        return ["npx", "--no-install", "nodekeeper"]
    return ["node", agent] if re.search(r"\.[cm]?[jt]s$", agent) else [agent]


def _addresses(lines):
    addresses = {}
    while len(addresses) < 2 and (line := lines.readline()):
        if found := _ADDRESS.match(line):
            addresses[found[1]] = found[2]
    return addresses


def _stop(process):
    _signal(process, signal.SIGTERM)
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
