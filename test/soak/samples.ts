import { readdirSync, readFileSync } from "node:fs";
import type { SoakedAgent } from "./soaked-agent.ts";

/** The agent at one moment. */
export interface Sample {
  /** Seconds since the soak began. */
  at: number;
  /** Of one life of the agent. */
  pid: number;
  rssMb: number;
  descriptors: number;
  /** Event loop lag in milliseconds (nodejs_eventloop_lag_seconds). Undefined if /metrics did not respond. */
  loopDelayMs: number | undefined;
  /** Response time of /livez in milliseconds. Undefined if it did not respond. */
  livezMs: number | undefined;
}

/** Returns a sample of the agent. Undefined if it is not running. @param at seconds since the soak began */
export async function sampleOf(agent: SoakedAgent, at: number): Promise<Sample | undefined> {
  const { pid, address, reader } = agent;
  if (pid === undefined) return undefined;
  try {
    const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    const descriptors = readdirSync(`/proc/${pid}/fd`).length;
    const begun = performance.now();
    const livezMs = await fetch(`http://${address}/livez`).then(
      (answer) => answer.text().then(() => performance.now() - begun),
      () => undefined,
    );
    const metrics = await reader.metrics().catch(() => "");
    const lag = /^nodejs_eventloop_lag_seconds (\S+)$/m.exec(metrics)?.[1];
    const loopDelayMs = lag === undefined ? undefined : Number(lag) * 1_000;
    return { at, pid, rssMb: Number(kib) / 1_024, descriptors, loopDelayMs, livezMs };
  } catch {
    // It ended while it was looked at.
    return undefined;
  }
}

// Growth is judged only for lives of the agent that lasted at least this long after their first minute.
const JUDGED_SECONDS = 180;
const WARM_UP_SECONDS = 60;
const MOST_RSS_MB = 400;
const MOST_DESCRIPTORS = 300;
const RSS_GROWTH = { factor: 1.25, more: 8 };
const DESCRIPTOR_GROWTH = { factor: 1, more: 24 };

/**
 * Returns which of RSS and open descriptors exceeded its limit, or grew over a life of the agent. Growth is not checked
 * for lives of less than four minutes.
 */
export function growthOf(samples: readonly Sample[]): string[] {
  const problems: string[] = [];
  const most = (key: "rssMb" | "descriptors") => Math.max(...samples.map((sample) => sample[key]));
  if (most("rssMb") > MOST_RSS_MB) problems.push(`RSS reached ${most("rssMb").toFixed(0)} MB`);
  if (most("descriptors") > MOST_DESCRIPTORS) problems.push(`${most("descriptors")} descriptors were open`);
  for (const [pid, warm] of longLives(samples)) {
    const quarter = Math.floor(warm.length / 4);
    for (const [key, bound] of [
      ["rssMb", RSS_GROWTH],
      ["descriptors", DESCRIPTOR_GROWTH],
    ] as const) {
      // What is needed between floods: the least of each quarter.
      const least = (part: readonly Sample[]) => Math.min(...part.map((sample) => sample[key]));
      const [first, last] = [least(warm.slice(0, quarter)), least(warm.slice(-quarter))];
      if (last > first * bound.factor + bound.more)
        problems.push(`${key} of process ${pid} grew from ${first.toFixed(0)} to ${last.toFixed(0)}`);
    }
  }
  return problems;
}

/** Whether a life of the agent was long enough for `growthOf` to compare its beginning and its end. */
export function isGrowthJudged(samples: readonly Sample[]): boolean {
  return longLives(samples).length > 0;
}

/** Returns the lives of at least four minutes by PID, without the samples of their first minute. */
function longLives(samples: readonly Sample[]): [number, Sample[]][] {
  return [...Map.groupBy(samples, ({ pid }) => pid)]
    .map(([pid, life]): [number, Sample[]] => [
      pid,
      life.filter(({ at }) => at >= life[0]!.at + WARM_UP_SECONDS),
    ])
    .filter(([, warm]) => warm.length > 0 && warm.at(-1)!.at - warm[0]!.at >= JUDGED_SECONDS);
}

/** A line for each minute: least, median, most of each figure. */
export function tableOf(samples: readonly Sample[]): string {
  const rows = [...Map.groupBy(samples, ({ at }) => Math.floor(at / 60))].map(([minute, part]) => {
    const lives = new Set(part.map(({ pid }) => pid)).size;
    const figures = (["rssMb", "descriptors", "loopDelayMs", "livezMs"] as const).map((key) =>
      spread(part, key),
    );
    return `| ${minute} | ${lives} | ${figures.join(" | ")} |`;
  });
  return [
    "| minute | processes | RSS, MB | descriptors | loop delay, ms | /livez, ms |",
    "|---|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}

function spread(samples: readonly Sample[], key: Exclude<keyof Sample, "at" | "pid">): string {
  const values = samples
    .map((sample) => sample[key])
    .filter((value) => value !== undefined)
    .sort((a, b) => a - b);
  if (values.length === 0) return "-";
  const digits = key === "descriptors" ? 0 : 1;
  return [values[0]!, values[values.length >> 1]!, values.at(-1)!]
    .map((value) => value.toFixed(digits))
    .join(" / ");
}
