"""Writes the modules of nodekeeper_sdk/gen from proto/. Needs the group "generate" of pyproject.toml."""

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
PROTO = HERE.parent / "proto"
GENERATED = HERE / "nodekeeper_sdk" / "gen"
DIRECTORIES = [
    "evictionplugin/v1alpha1",
    "k8s/core/v1",
    "nodekeeper/devices/v1alpha2",
    "nodekeeper/eviction/v1alpha1",
    "pluginregistration/v1",
    "reporterplugin/v1alpha1",
]

files = [str(path) for directory in DIRECTORIES for path in sorted((PROTO / directory).glob("*.proto"))]
shutil.rmtree(GENERATED, ignore_errors=True)
GENERATED.mkdir()
command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(PROTO), f"--python_out={GENERATED}", f"--pyi_out={GENERATED}"]
subprocess.run(command + files, check=True)
