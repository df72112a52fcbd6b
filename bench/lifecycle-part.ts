import { Registry, silentLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { type LifecycleSettings, PodLifecycleEventGenerator } from "../packages/agent/src/lifecycle/index.ts";
import { CriRuntime, type Pod } from "../packages/agent/src/runtime/index.ts";

/** Lifecycle and the CRI client as the agent has them, in this process. */
export function startLifecycle(socket: string, settings: Partial<LifecycleSettings>) {
  const registry = new Registry();
  const common = { clock: systemClock, log: silentLogger, registry };
  const runtime = new CriRuntime({ ...common, endpoint: socket });
  let listed = 0;
  const waiting = new Set<{ target: number; resolve: () => void }>();
  let listedAt = 0;
  const list = runtime.listPods.bind(runtime);
  runtime.listPods = async (signal): Promise<readonly Pod[]> => {
    const pods = await list(signal);
    listed++;
    listedAt = performance.now();
    for (const each of waiting) if (listed >= each.target) each.resolve();
    return pods;
  };
  const lifecycle = new PodLifecycleEventGenerator({ ...common, runtime, settings });
  const controller = new AbortController();
  const running = lifecycle.run(controller.signal);
  let lastEventAt = 0;
  const reading = (async () => {
    for await (const item of lifecycle.events.read({}, controller.signal)) {
      if (item.kind === "event") lastEventAt = performance.now();
    }
  })();
  const until = async (check: () => boolean, timeoutMs = 60_000): Promise<void> => {
    for (const endsAt = performance.now() + timeoutMs; !check(); await systemClock.sleep(5)) {
      if (performance.now() > endsAt) throw new Error("the benchmark waited without success");
    }
  };
  return {
    lifecycle,
    until,
    /** When the last list came, by performance.now(). */
    listedAt: () => listedAt,
    lastEventAt: () => lastEventAt,
    /** Resolves when so many more lists came. */
    relists: (count: number) => {
      // Without polling: it would be measured too.
      const { promise, resolve } = Promise.withResolvers<void>();
      const wait = { target: listed + count, resolve };
      waiting.add(wait);
      return promise.finally(() => waiting.delete(wait));
    },
    async stop(): Promise<void> {
      controller.abort(stopped("benchmark is over"));
      await running;
      await reading;
      runtime[Symbol.dispose]();
    },
  };
}
