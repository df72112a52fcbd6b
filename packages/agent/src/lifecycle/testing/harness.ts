import { createLogger, FakeClock, Registry, stopped } from "@nodekeeper/core/lib";
import type { LifecycleStore } from "../../state/index.ts";
import { type LifecycleSettings, PodLifecycleEventGenerator } from "../index.ts";
import { MemoryRuntime } from "./memory-runtime.ts";

export interface HarnessOptions {
  runtime?: MemoryRuntime;
  clock?: FakeClock;
  store?: LifecycleStore;
  settings?: Partial<LifecycleSettings>;
}

/** A generator with an in-memory runtime and a fake clock. */
export function createHarness(options: HarnessOptions = {}) {
  const clock = options.clock ?? new FakeClock();
  const runtime = options.runtime ?? new MemoryRuntime(clock);
  const registry = new Registry();
  const lines: Record<string, unknown>[] = [];
  let logs = 0;
  const generator = new PodLifecycleEventGenerator({
    runtime,
    ...(options.store ? { store: options.store } : {}),
    clock,
    log: createLogger("info", { write: (line) => lines.push(JSON.parse(line)) }),
    registry,
    ...(options.settings ? { settings: options.settings } : {}),
    random: () => 0.5,
    newLogId: () => `log${++logs}`,
  });
  const controller = new AbortController();
  let running: Promise<void> | undefined;
  /** Stops the generator and waits for it to end. */
  const stop = async () => {
    controller.abort(stopped("test is over"));
    await running;
  };
  return {
    clock,
    runtime,
    registry,
    generator,
    /** Starts the generator and completes its first relist. */
    async start(): Promise<void> {
      running = generator.run(controller.signal);
      await clock.step(0);
    },
    stop,
    [Symbol.asyncDispose]: stop,
    /** Returns the emitted events as "type container"; PodSync with the pod's UID. */
    emitted(): string[] {
      const emitted: string[] = [];
      for (let sequence = 1; sequence <= generator.events.last; sequence++) {
        const event = generator.events.get(sequence);
        if (event)
          emitted.push(`${event.type.replace("Container", "")} ${event.container?.id ?? event.pod.uid}`);
      }
      return emitted;
    },
    /** Returns the log lines with this message. */
    logged: (message: string) => lines.filter(({ msg }) => msg === message),
    async metric(name: string, labels: Record<string, string> = {}): Promise<number | undefined> {
      const metric = await registry.getSingleMetric(`nodekeeper_lifecycle_${name}`)?.get();
      return metric?.values.find((value) =>
        Object.entries(labels).every(([label, wanted]) => value.labels[label] === wanted),
      )?.value;
    },
  };
}

/** A started generator with pod a, whose container a1 is running. */
export async function startedWithPod(options: HarnessOptions = {}) {
  const harness = createHarness(options);
  harness.runtime.addPod("a");
  harness.runtime.set("a", "a1", "running");
  await harness.start();
  return harness;
}
