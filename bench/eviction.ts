import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { decide, emptyEvictionState } from "@nodekeeper/api/decide";
import { liveEvictionPolicy } from "../packages/agent/src/assembly/testing/defaults.ts";
import { observeJson } from "../packages/agent/src/eviction/index.ts";
import { EvictionPart } from "./eviction-part.ts";
import { benchPods } from "./eviction-pods.ts";
import { benchOutOfTurn, benchSampling } from "./eviction-speed.ts";
import { type Figure, percentile } from "./figures.ts";

const NODE = "bench";

/** The budgets of eviction: a round with many plugins, deciding alone, the memory of the watch. */
export async function benchEviction(quick: boolean): Promise<Figure[]> {
  return [
    ...(await benchRound({ pods: 1_000, plugins: 32, budget: 150 }, quick)),
    ...(await benchRound({ pods: 110, plugins: 8, budget: 15 }, quick)),
    ...(await benchOutOfTurn(quick)),
    ...(await benchSampling(quick)),
    benchDecide(1_000, 5),
    await benchWatch(1_000, 40, quick),
  ];
}

interface Case {
  pods: number;
  plugins: number;
  budget: number;
}

/** Measures CPU time, duration and RSS of this process for rounds whose plugins respond at once, on real sockets. */
async function benchRound({ pods, plugins, budget }: Case, quick: boolean): Promise<Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), "nkb-"));
  const script = fileURLToPath(new URL("./eviction-plugins-process.ts", import.meta.url));
  const child = spawn(process.execPath, [script, directory, String(plugins)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  const part = await EvictionPart.start(directory, benchPods(pods, NODE), NODE, plugins);
  try {
    await part.rounds(5);
    const cpu: number[] = [];
    const wall: number[] = [];
    for (let round = 0; round < (quick ? 10 : 40); round++) {
      const before = process.cpuUsage();
      const startedAt = performance.now();
      await part.rounds(1);
      const { user, system } = process.cpuUsage(before);
      cpu.push((user + system) / 1000);
      wall.push(performance.now() - startedAt);
    }
    const name = `round, ${pods} pods, ${plugins} plugins`;
    return [
      { name: `${name}: own CPU, median`, value: percentile(cpu, 0.5), unit: "ms", budget },
      { name: `${name}: own CPU, p90`, value: percentile(cpu, 0.9), unit: "ms" },
      { name: `${name}: from begin to end, median`, value: percentile(wall, 0.5), unit: "ms" },
      { name: `${name}: RSS of the process`, value: process.memoryUsage().rss / 1e6, unit: "MB" },
    ];
  } finally {
    await part.stop();
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true });
  }
}

/** `decide` with every plugin under pressure and each naming pods. */
function benchDecide(count: number, budget: number): Figure {
  const pods = benchPods(count, NODE).map((object) => observeJson(object).pod);
  const names = Array.from({ length: 32 }, (_, at) => `plugin-${at}`);
  const input = {
    now: Date.now(),
    nodeName: NODE,
    pods,
    plugins: names.map((plugin, at) => ({
      plugin,
      evictPods: {
        answer: {
          pods: pods
            .filter((_, index) => index % 32 === at)
            .map((pod) => ({ pod, reason: "it uses too much", force: false, gracePeriodSeconds: null })),
          condition: null,
        },
      },
      threshold: {
        answer: {
          metType: "hard" as const,
          scope: "memory",
          thresholdValue: 0.8,
          observedValue: 0.9,
          operator: "greaterThan" as const,
          gracePeriodSeconds: 0,
          condition: null,
          candidateUids: [],
        },
      },
    })),
    tops: names.map((plugin, at) => ({
      plugin,
      top: { answer: { pods: [pods[at]!], gracePeriodSeconds: null } },
    })),
    outcomes: [],
    policy: liveEvictionPolicy,
    state: emptyEvictionState(),
  };
  const times: number[] = [];
  for (let round = 0; round < 200; round++) {
    const startedAt = performance.now();
    decide(input);
    times.push(performance.now() - startedAt);
  }
  return {
    name: `decide, ${count} pods, each asked for, median`,
    value: percentile(times.slice(50), 0.5),
    unit: "ms",
    budget,
  };
}

/** What a process holds more after it watches so many pods than one that watches none. */
async function benchWatch(count: number, budget: number, quick: boolean): Promise<Figure> {
  const script = fileURLToPath(new URL("./eviction-memory.ts", import.meta.url));
  const rss = async (pods: number) => {
    const child = spawn(process.execPath, ["--expose-gc", script, String(pods)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [chunk] = await once(child.stdout, "data");
    return Number(String(chunk));
  };
  // What malloc gives back differs from run to run.
  const all: number[] = [];
  for (let run = 0; run < (quick ? 2 : 5); run++) all.push((await rss(count)) - (await rss(0)));
  const value = percentile(all, 0.5);
  return { name: `RSS that the watch of ${count} pods adds, median`, value, unit: "MB", budget };
}
