import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { ContainerEventType } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { stopped, systemClock } from "@nodekeeper/core/lib";
import type { PodLifecycleEvent } from "../packages/agent/src/lifecycle/index.ts";
import { type Figure, percentile } from "./figures.ts";
import { benchLifecycleApi } from "./lifecycle-api.ts";
import { benchContainerd } from "./lifecycle-containerd.ts";
import { startLifecycle } from "./lifecycle-part.ts";
import { RuntimeProcess } from "./runtime-client.ts";
import type { Emitted } from "./runtime-process.ts";

/**
 * Measures the budgets of lifecycle: an unchanged relist, many changes at once, hints, memory, consumers of the API,
 * and real containerd.
 */
export async function benchLifecycle(quick: boolean): Promise<Figure[]> {
  return [
    await benchRelist(500, 3, 12, quick),
    await benchRelist(110, 3, 3, quick),
    ...(await benchChanges()),
    ...(await benchHints(quick)),
    ...(await benchMemory(quick)),
    ...(await benchLifecycleApi()),
    ...(await benchContainerd(quick)),
  ];
}

/** CPU of this process for one relist in which nothing changed: sending, receiving, decoding, comparing. */
async function benchRelist(pods: number, perPod: number, budget: number, quick: boolean): Promise<Figure> {
  const runtime = await new RuntimeProcess(pods, perPod, "unimplemented").ready();
  const part = startLifecycle(runtime.socket, { relistPeriod: 20 });
  try {
    const rounds = quick ? 50 : 200;
    await part.relists(50);
    const cpu = process.cpuUsage();
    await part.relists(rounds);
    const { user, system } = process.cpuUsage(cpu);
    const value = (user + system) / 1000 / rounds;
    return {
      name: `unchanged relist, ${pods} pods, ${pods * perPod} containers`,
      value,
      unit: "ms CPU",
      budget,
    };
  } finally {
    await part.stop();
    runtime.stop();
  }
}

/** From the list that shows 100 changed pods to the last of their events, while each status takes 20 ms. */
async function benchChanges(): Promise<Figure[]> {
  const runtime = await new RuntimeProcess(500, 3, "unimplemented").ready();
  const part = startLifecycle(runtime.socket, { relistPeriod: 1_000 });
  try {
    await part.relists(3);
    await runtime.ask({ op: "statusDelay", ms: 20 });
    const times: number[] = [];
    for (let round = 0; round < 5; round++) {
      const before = part.lifecycle.events.last;
      await runtime.ask({ op: "restart", pods: 100 });
      // Each of them dies, is removed and started again.
      await part.until(() => part.lifecycle.events.last >= before + 300);
      times.push(part.lastEventAt() - part.listedAt());
    }
    return [
      {
        name: "100 changed pods at 20 ms a status: list to last event, median",
        value: percentile(times, 0.5),
        unit: "ms",
        budget: 250,
      },
      {
        name: "the same, first of five: the limit of calls at once is still low",
        value: times[0]!,
        unit: "ms",
      },
    ];
  } finally {
    await part.stop();
    runtime.stop();
  }
}

/** From the runtime's event to ours. */
async function benchHints(quick: boolean): Promise<Figure[]> {
  const runtime = await new RuntimeProcess(110, 3, "on").ready();
  const part = startLifecycle(runtime.socket, {});
  const seen = new Map<string, number>();
  const reading = new AbortController();
  const read = (async () => {
    for await (const item of part.lifecycle.events.read({}, reading.signal)) {
      if (item.kind === "event") seen.set(keyOf(item.event), performance.timeOrigin + performance.now());
    }
  })();
  try {
    await part.relists(1);
    await systemClock.sleep(1_500);
    const { emitted } = await runtime.ask<{ emitted: Emitted[] }>({
      op: "rate",
      perSecond: 200,
      seconds: quick ? 5 : 20,
    });
    await systemClock.sleep(500);
    const reported = emitted.filter(
      ({ type }) =>
        type === ContainerEventType.CONTAINER_STARTED_EVENT ||
        type === ContainerEventType.CONTAINER_STOPPED_EVENT,
    );
    const delays = reported.flatMap(({ id, type, at }) => {
      const ours = seen.get(
        `${type === ContainerEventType.CONTAINER_STARTED_EVENT ? "ContainerStarted" : "ContainerDied"} ${id}`,
      );
      return ours === undefined ? [] : [ours - at];
    });
    return [
      {
        name: "runtime's event to ours at 200 a second, p50",
        value: percentile(delays, 0.5),
        unit: "ms",
        budget: 5,
      },
      { name: "the same, p99", value: percentile(delays, 0.99), unit: "ms", budget: 25 },
      {
        name: `events not reported, of ${reported.length}`,
        value: reported.length - delays.length,
        unit: "",
        budget: 0,
      },
    ];
  } finally {
    reading.abort(stopped("done"));
    await read;
    await part.stop();
    runtime.stop();
  }
}

function keyOf({ type, container }: PodLifecycleEvent): string {
  return `${type} ${container?.id}`;
}

/**
 * What records, cache and a full log add: to a process that lists the same pods and remembers nothing, each time a
 * process of its own.
 */
async function benchMemory(quick: boolean): Promise<Figure[]> {
  const lists = quick ? 50 : 150;
  const base = await memoryOf("list", lists);
  const full = await memoryOf("100000", lists);
  return [
    {
      name: "RSS of records, cache and a log of 100,000 events; 500 pods, 1,500 containers",
      value: full.rss - base.rss,
      unit: "MB",
      budget: 25,
    },
    { name: "of it the heap in use", value: full.heap - base.heap, unit: "MB" },
  ];
}

async function memoryOf(what: string, lists: number): Promise<{ rss: number; heap: number }> {
  const runtime = await new RuntimeProcess(500, 3, "unimplemented").ready();
  const script = fileURLToPath(new URL("./lifecycle-memory.ts", import.meta.url));
  const child = spawn(process.execPath, ["--expose-gc", script, runtime.socket, what, String(lists)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    let isDone = false;
    const answer = once(child.stdout, "data").finally(() => {
      isDone = true;
    });
    // Each time 500 containers die, go and are replaced: 1,500 events.
    while (!isDone) {
      await runtime.ask({ op: "restart", pods: 500 });
      await Promise.race([answer, systemClock.sleep(250)]);
    }
    const [chunk] = await answer;
    return JSON.parse(String(chunk)) as { rss: number; heap: number };
  } finally {
    child.kill("SIGKILL");
    runtime.stop();
  }
}
