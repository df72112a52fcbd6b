import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { PodLifecycleClient } from "@nodekeeper/sdk";
import type { Figure } from "./figures.ts";

const EVENTS = 100_000;
const SUBSCRIBERS = 1_000;
const BURST = 20;

/** What consumers of the API wait for: a long log, and one event among many subscribers. */
export async function benchLifecycleApi(): Promise<Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), "nkbench-"));
  const socket = join(directory, "agent.sock");
  const script = fileURLToPath(new URL("./lifecycle-api-process.ts", import.meta.url));
  const child = spawn(process.execPath, [script, socket, String(EVENTS)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  /** Appends events. Returns the longest event loop delay of the agent since the previous call, in milliseconds. */
  const append = async (count: number): Promise<number> => {
    child.stdin.write(`${count}\n`);
    return Number((await lines.next()).value);
  };
  try {
    await lines.next();
    using client = new PodLifecycleClient({ socket });
    const times: number[] = [];
    for (let round = 0; round < 3; round++) {
      const startedAt = performance.now();
      let read = 0;
      for await (const item of client.watch({ since: 0, stopAtEnd: true })) if (item.kind === "event") read++;
      if (read !== EVENTS) throw new Error(`${read} events were read`);
      times.push(performance.now() - startedAt);
    }

    const ending = new AbortController();
    let received = 0;
    let reached = Promise.withResolvers<void>();
    let target = SUBSCRIBERS;
    const watching = Array.from({ length: SUBSCRIBERS }, async () => {
      for await (const _item of client.watch({}, ending.signal)) if (++received === target) reached.resolve();
    });
    const until = async (more: number): Promise<void> => {
      target = received + more;
      reached = Promise.withResolvers();
      await reached.promise;
    };
    await reached.promise;
    await append(1);
    await until(SUBSCRIBERS);
    await append(1);
    await until(SUBSCRIBERS);
    const startedAt = performance.now();
    const standstill = await append(BURST);
    await until(SUBSCRIBERS * BURST);
    const tookMs = performance.now() - startedAt;
    const standstillOfBurst = await append(0);
    ending.abort();
    await Promise.all(watching);
    return [
      {
        name: "reading 100,000 events over the API, first of three",
        value: times[0]!,
        unit: "ms",
        budget: 2_000,
      },
      { name: "the same, fastest", value: Math.min(...times), unit: "ms" },
      {
        name: "1,000 subscribers, one event: longest standstill of the agent",
        value: standstill,
        unit: "ms",
        budget: 50,
      },
      {
        name: "1,000 subscribers, 20 events at once: the same",
        value: standstillOfBurst,
        unit: "ms",
        budget: 50,
      },
      { name: "1,000 subscribers, 20 events at once: until all have them", value: tookMs, unit: "ms" },
    ];
  } finally {
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  }
}
