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
import argparse, ast, contextlib, glob, os, signal, socket, stat, sys

main, directory = sys.argv[1:]
path_of = lambda instance, name="sample": os.path.join(directory, f"{name}-{instance}.sock")

def serve(instance, backlog, name="sample"):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path_of(instance, name))
    server.listen(backlog)
    return server

serve("dead0000", 1).close()
serve("dead0000", 1, "sample-two").close()
serve("not-an-instance", 1).close()
open(path_of("f11e0000"), "w").close()
live = serve("11fe0000", 8)
frozen, waiting = serve("f0000000", 0), []
with contextlib.suppress(BlockingIOError):
    while True:
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].setblocking(False)
        waiting[-1].connect(path_of("f0000000"))
os.symlink(os.path.join(directory, "nothing"), path_of("90000000"))

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
  "%s starts beside a frozen instance and one that ends, and removes only sockets of its own killed ones",
  async (sample) => {
    await execute("python3", ["-c", script, join(root, "examples", sample, "main.py"), directory]);
    expect(readdirSync(directory).sort()).toEqual([
      "sample-11fe0000.sock",
      "sample-90000000.sock",
      "sample-f0000000.sock",
      "sample-f11e0000.sock",
      "sample-not-an-instance.sock",
      "sample-two-dead0000.sock",
    ]);
  },
  120_000,
);
