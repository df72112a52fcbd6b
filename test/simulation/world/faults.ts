import type { DevApiServerOptions, EventFaults } from "@nodekeeper/testing";
import type { Machine } from "../machine/machine.ts";
import type { Weather } from "../machine/network.ts";

/** Probabilities of faults in one world, each drawn from the seed: many worlds have none of some kinds. */
export interface FaultRates {
  /** Share of requests to the API server that are refused, by status. */
  refusals: Readonly<Record<number, number>>;
  /** Share of requests that break before they arrive, and before the response does. */
  lostRequests: number;
  lostResponses: number;
  /** Share of messages that take long, and how long at most, in milliseconds. */
  slow: number;
  slowestMs: number;
  /** What happens to events of containers between the runtime and the agent. */
  runtimeEvents: EventFaults;
  /** Mean time between faults of each kind, in milliseconds. Infinity: none. */
  cutWatches: number;
  agentKills: number;
  agentStops: number;
  pluginKills: number;
  pluginFreezes: number;
  consumerKills: number;
  runtimeFreezes: number;
  runtimeRestarts: number;
  wallSteps: number;
  driverReplacements: number;
  driverRemovals: number;
  kubeletRestarts: number;
  forcedDeletions: number;
  sliceDeletions: number;
  meddling: number;
  cdiRemovals: number;
  fullDisks: number;
}

/** Faults that happen by themselves, after some time. */
export type TimedFault =
  | "cutWatches"
  | "agentKills"
  | "agentStops"
  | "pluginKills"
  | "pluginFreezes"
  | "consumerKills"
  | "runtimeFreezes"
  | "runtimeRestarts"
  | "wallSteps"
  | "driverReplacements"
  | "driverRemovals"
  | "kubeletRestarts"
  | "forcedDeletions"
  | "sliceDeletions"
  | "meddling"
  | "cdiRemovals"
  | "fullDisks";

/** Number of faults by name. */
export type Counts = Record<string, number>;

function count(counts: Counts, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

type Fault = ReturnType<NonNullable<DevApiServerOptions["faults"]>>;
type RequestInfo = Parameters<NonNullable<DevApiServerOptions["faults"]>>[0];

export interface ApiFaults {
  of(request: RequestInfo): Fault;
}

/** Draws the faults of a world. */
export function drawFaults(machine: Machine): FaultRates {
  const share = (often: number, most: number) => (machine.chance(often) ? machine.random() * most : 0);
  const meanMs = (often: number, leastS: number, mostS: number) =>
    machine.chance(often) ? machine.between(leastS, mostS) * 1_000 : Number.POSITIVE_INFINITY;
  return {
    refusals: {
      401: share(0.1, 0.05),
      409: share(0.3, 0.1),
      429: share(0.3, 0.2),
      500: share(0.3, 0.2),
      503: share(0.3, 0.3),
    },
    lostRequests: share(0.4, 0.1),
    lostResponses: share(0.5, 0.15),
    slow: share(0.5, 0.1),
    slowestMs: machine.pick([50, 500, 5_000, 15_000]),
    runtimeEvents: {
      lost: share(0.3, 0.5),
      doubled: share(0.2, 0.3),
      reordered: share(0.3, 0.5),
      delayMs: machine.pick([0, 0, 0, 200, 3_000]),
    },
    cutWatches: meanMs(0.5, 5, 60),
    agentKills: meanMs(0.6, 10, 60),
    agentStops: meanMs(0.3, 20, 90),
    pluginKills: meanMs(0.4, 15, 90),
    pluginFreezes: meanMs(0.3, 15, 90),
    consumerKills: meanMs(0.3, 10, 60),
    runtimeFreezes: meanMs(0.2, 20, 90),
    runtimeRestarts: meanMs(0.3, 15, 60),
    wallSteps: meanMs(0.25, 20, 90),
    driverReplacements: meanMs(0.3, 15, 90),
    driverRemovals: meanMs(0.2, 15, 60),
    kubeletRestarts: meanMs(0.3, 15, 90),
    forcedDeletions: meanMs(0.4, 5, 60),
    sliceDeletions: meanMs(0.3, 5, 60),
    meddling: meanMs(0.3, 5, 60),
    cdiRemovals: meanMs(0.3, 5, 60),
    fullDisks: meanMs(0.2, 15, 60),
  };
}

/** Messages of a world: mostly quick, some slow, some lost. */
export function weatherOf(
  machine: Machine,
  rates: FaultRates,
  counts: Counts,
  onLost: (url: string) => void,
): Weather {
  const delay = (leastMs: number, mostMs: number) =>
    machine.chance(rates.slow)
      ? machine.random() * rates.slowestMs
      : leastMs + machine.random() * (mostMs - leastMs);
  return {
    localMs: () => 0.05 + machine.random() * 0.4,
    remoteMs: () => delay(0.5, 4),
    breaks: (_method, url) => {
      const drawn = machine.random();
      if (drawn >= rates.lostRequests + rates.lostResponses) return undefined;
      const lost = drawn < rates.lostRequests ? "request" : "response";
      count(counts, lost === "request" ? "lostRequests" : "lostResponses");
      onLost(url);
      return lost;
    },
  };
}

/** Refusals of the API server. */
export function apiFaultsOf(machine: Machine, rates: FaultRates, counts: Counts): ApiFaults {
  return {
    of({ method }) {
      for (const [status, share] of Object.entries(rates.refusals)) {
        if (method === "GET" && status === "409") continue;
        if (!machine.chance(share)) continue;
        count(counts, `refused ${status}`);
        const headers: Record<string, string> =
          status === "429" && machine.chance(0.5) ? { "retry-after": "1" } : {};
        return { status: Number(status), headers, body: statusObject(Number(status)) };
      }
      return undefined;
    },
  };
}

const reasons: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  409: "Conflict",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
};

function statusObject(code: number): object {
  return {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason: reasons[code],
    message: "by chance",
    code,
  };
}
