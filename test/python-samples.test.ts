import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findProgram, root } from "../scripts/programs.ts";

const execute = promisify(execFile);
const python = findProgram("python3");

// Runs the function alone: the packages of the samples are not installed here.
const script = `
import argparse, ast, contextlib, glob, os, signal, socket, sys

main, directory = sys.argv[1:]
path_of = lambda instance: os.path.join(directory, f"sample-{instance}.sock")

def serve(instance, backlog):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path_of(instance))
    server.listen(backlog)
    return server

serve("killed", 1).close()
live = serve("live", 8)
frozen, waiting = serve("frozen", 0), []
with contextlib.suppress(BlockingIOError):
    while True:
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].setblocking(False)
        waiting[-1].connect(path_of("frozen"))
# Found by the directory's listing, and not there when it is connected to.
os.symlink(os.path.join(directory, "nothing"), path_of("gone"))

functions = [each for each in ast.parse(open(main).read()).body if getattr(each, "name", "") == "remove_stale_sockets"]
flags = argparse.Namespace(socket_dir=directory, name="sample")
exec(compile(ast.Module(functions, []), main, "exec"), globals())
signal.alarm(60)
remove_stale_sockets()
`;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nkp-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

it.skipIf(!python).each(["driver-python", "eviction-python", "reporter-python"])(
  "%s starts beside a frozen instance and one that ends, and removes sockets of killed ones only",
  async (sample) => {
    await execute("python3", ["-c", script, join(root, "examples", sample, "main.py"), directory]);
    expect(readdirSync(directory).sort()).toEqual([
      "sample-frozen.sock",
      "sample-gone.sock",
      "sample-live.sock",
    ]);
  },
  120_000,
);
