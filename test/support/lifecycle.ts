import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { SimulatedCri, type SimulatedCriOptions, SimulatedRuntime } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import {
  type LifecycleSettings,
  PodLifecycleEventGenerator,
} from "../../packages/agent/src/lifecycle/index.ts";
import { CriRuntime, type RuntimeSettings } from "../../packages/agent/src/runtime/index.ts";

export interface LifecycleSetup {
  cri?: Partial<SimulatedCriOptions>;
  client?: Partial<RuntimeSettings>;
  lifecycle?: Partial<LifecycleSettings>;
}

/** Lifecycle with the CRI client of the agent, and a simulated runtime on a real socket. */
export async function startLifecycle(setup: LifecycleSetup = {}) {
  const ends: (() => Promise<void> | void)[] = [];
  const directory = mkdtempSync(join(tmpdir(), "nkfault-"));
  ends.push(() => rmSync(directory, { recursive: true, force: true }));
  const runtime = new SimulatedRuntime({ clock: systemClock });
  const socket = join(directory, "cri.sock");
  const cri = new SimulatedCri({
    runtime,
    socket,
    clock: systemClock,
    events: "unimplemented",
    ...setup.cri,
  });
  await cri.start();
  ends.push(() => cri.stop());
  const registry = new Registry();
  const common = { clock: systemClock, log: silentLogger, registry };
  const client = new CriRuntime({ ...common, endpoint: socket, settings: setup.client ?? {} });
  ends.push(() => client[Symbol.dispose]());
  const lifecycle = new PodLifecycleEventGenerator({
    ...common,
    runtime: client,
    settings: { relistPeriod: 50, inspectionPatience: 60_000, minStreamMs: 100, ...setup.lifecycle },
  });
  // On a busy machine a pod can be read only after the first list; its start is an event then.
  let baseline = 0;
  const start = async () => {
    const controller = new AbortController();
    const running = lifecycle.run(controller.signal);
    ends.push(async () => {
      controller.abort(stopped("test is over"));
      await running;
    });
    await until("all pods have been read", () => {
      const read = lifecycle.statuses.uids().filter((uid) => !lifecycle.statuses.get(uid).error);
      return lifecycle.isKnown && read.length === runtime.sandboxes.size;
    });
    baseline = lifecycle.events.last;
  };
  const pod = (uid: string) => {
    const sandbox = runtime.runSandbox({ uid, name: `pod-${uid}`, namespace: "default" });
    return { sandbox, id: runtime.runContainer(sandbox, { name: "app" }) };
  };
  /** "Died <uid>" for containers, in order, since all pods were read. */
  const told = () => {
    const words: string[] = [];
    for (let sequence = baseline + 1; sequence <= lifecycle.events.last; sequence++) {
      const event = lifecycle.events.get(sequence);
      if (event?.container?.kind === "container")
        words.push(`${event.type.replace("Container", "")} ${event.pod.uid}`);
    }
    return words;
  };
  return {
    runtime,
    cri,
    lifecycle,
    start,
    pod,
    told,
    health: () => lifecycle.healthCheck().check(),
    async [Symbol.asyncDispose]() {
      for (const end of ends.reverse()) await end();
    },
  };
}
