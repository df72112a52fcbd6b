import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RuntimeServiceDefinition } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createClient } from "nice-grpc";
import { CriRuntime } from "../../../../agent/src/runtime/index.ts";
import { SimulatedCri, type SimulatedCriOptions, SimulatedRuntime } from "../../index.ts";

/** Serves simulated runtimes on real sockets, with the agent's client and a plain one. Call `end` in afterEach. */
export function simulations() {
  const ends: (() => Promise<void> | void)[] = [];

  async function serve(options: Partial<SimulatedCriOptions> = {}) {
    const directory = mkdtempSync(join(tmpdir(), "nksim-"));
    ends.push(() => rmSync(directory, { recursive: true, force: true }));
    const runtime = options.runtime ?? new SimulatedRuntime({ clock: systemClock });
    const socket = join(directory, "cri.sock");
    const cri = new SimulatedCri({ socket, clock: systemClock, ...options, runtime });
    await cri.start();
    ends.push(() => cri.stop());
    const client = new CriRuntime({
      endpoint: cri.socket,
      clock: systemClock,
      log: silentLogger,
      registry: new Registry(),
    });
    ends.push(() => client[Symbol.dispose]());
    // The kubelet's limit.
    const channel = dialUnix(cri.socket, { maxReceiveBytes: 16 * 2 ** 20 });
    ends.push(() => channel.close());
    return { runtime, cri, client, bare: createClient(RuntimeServiceDefinition, channel), directory };
  }

  async function end(): Promise<void> {
    for (const each of ends.splice(0).reverse()) await each();
  }

  return { serve, end };
}
