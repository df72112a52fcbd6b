import { readFileSync } from "node:fs";
import type { AuditedRequest } from "../test/e2e/support/audit-log.ts";
import type { ControlPlane } from "../test/e2e/support/control-plane.ts";

/** The resources that agents watch. */
const watched = ["pods", "nodes", "customnoderesources", "resourceslices"] as const;

/** CPU time that a process has used so far, seconds. */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [utime = 0, stime = 0] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14).map(Number);
  // USER_HZ is 100 on every Linux that Node runs on.
  return (utime + stime) / 100;
}

/** Returns the resident memory of a process in MiB. */
export function rssMbOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

/** Watches that the API server has open of each resource, by its own metric. */
export async function openWatches({ admin }: ControlPlane): Promise<Map<string, number>> {
  const { text } = await admin.get("/metrics");
  const open = new Map<string, number>(watched.map((resource) => [resource, 0]));
  for (const line of String(text).split("\n")) {
    if (!line.startsWith("apiserver_longrunning_requests{") || !line.includes('verb="WATCH"')) continue;
    const resource = /resource="([^"]*)"/.exec(line)?.[1] ?? "";
    const count = open.get(resource);
    if (count !== undefined) open.set(resource, count + Number(line.split(" ").at(-1)));
  }
  return open;
}

/** Requests by the second in which the server received them. */
export class Rates {
  readonly requests: readonly AuditedRequest[];
  readonly #times: readonly number[];

  /** @param requests in the order in which they came */
  constructor(requests: readonly AuditedRequest[]) {
    this.requests = requests;
    this.#times = requests.map(({ requestReceivedTimestamp }) => Date.parse(requestReceivedTimestamp));
  }

  /** From the first request to the last, seconds, at least 1. */
  get seconds(): number {
    return Math.max(((this.#times.at(-1) ?? 0) - (this.#times[0] ?? 0)) / 1_000, 1);
  }

  /** Requests in the busiest second. */
  get peak(): number {
    const counts = new Map<number, number>();
    const [first = 0] = this.#times;
    for (const time of this.#times) {
      const second = Math.floor((time - first) / 1_000);
      counts.set(second, (counts.get(second) ?? 0) + 1);
    }
    return Math.max(0, ...counts.values());
  }

  /** Requests a second from the first to the last. */
  get mean(): number {
    return this.requests.length / this.seconds;
  }
}
