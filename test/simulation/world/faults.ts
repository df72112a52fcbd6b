import type { DevApiServerOptions, EventFaults } from "@nodekeeper/testing";
import type { Machine } from "../machine/machine.ts";
import type { Weather } from "../machine/network.ts";
import type { StopFaults } from "./container-stops.ts";

/** Faults that happen by themselves. Their rate is the mean time between them, in milliseconds. Infinity: none. */
export type TimedFault =
  | "cutWatches"
  | "stalledWatches"
  | "apiOutages"
  | "agentKills"
  | "agentStops"
  | "edits"
  | "memoryChanges"
  | "policyEdits"
  | "budgetChanges"
  | "drains"
  | "pluginKills"
  | "pluginFreezes"
  | "flaps"
  | "slowRestarts"
  | "lies"
  | "pluginReplacements"
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
  | "fullDisks"
  | "readOnlyDisks"
  | "secondAgents"
  | "powerLosses"
  | "reboots"
  | "hostChanges"
  | "hostDamages"
  | "containerCrashes"
  | "poolAgentKills"
  | "poolAgentStops"
  | "poolDriverRemovals"
  | "leaseMeddling"
  | "leaseRefusals"
  | "partitions"
  | "poolMeddling";

/** Rates of faults in one world, drawn from its seed: mean times and probabilities. Many worlds lack some kinds. */
export interface FaultRates extends Record<TimedFault, number>, StopFaults {
  /** Share of requests to the API server that are refused, by status. */
  refusals: Readonly<Record<number, number>>;
  /** Share of watches that are accepted and end with the error that their version has expired. */
  expiredWatches: number;
  /** Share of requests that break before they arrive, and before the response does. */
  lostRequests: number;
  lostResponses: number;
  /** Share of messages that take long, and how long at most, in milliseconds. */
  slow: number;
  slowestMs: number;
  /** What happens to events of containers between the runtime and the agent. */
  runtimeEvents: EventFaults;
  /**
   * Fractions of the agent's evictions and of its other writes after which it is killed before it receives the
   * response. The first is also the fraction of evicted pods after whose deletion it is killed within seconds.
   */
  killsAtEvictions: number;
  killsAtWrites: number;
  /** Share of writes of Leases and ResourceSlices after which the agent that wrote dies, in worlds with shared pools. */
  killsAtPoolWrites: number;
  /**
   * Fraction of the agent's writes after which a reporter immediately changes its report, and of its writes to the
   * Node before which another client writes to the Node.
   */
  changesAtWrites: number;
  /** Share of starts of a plugin during which it stops for a while. */
  slowStarts: number;
  /** Share of the plugins that lie in the calm too. */
  stubbornLiars: number;
  /** Share of the agent's reads of a claim that waits to be bound after which it is allocated anew at once. */
  reallocations: number;
  /** Share of the claims to bind that are allocated a device of another node first. */
  otherNodes: number;
  /** Share of the calls that prepare a claim with binding conditions at which the agent dies before the driver is called. */
  killsAtPreparations: number;
  /** Of the losses of power, the share that loses commits, and the share that tears files which were not synced. */
  lostCommits: number;
  tornFiles: number;
  /** Share of the allocations with opaque parameters for which the API server refuses a server-side apply. */
  unsortedParameters: number;
}

/** Number of faults by name. */
export type Counts = Record<string, number>;

export function count(counts: Counts, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

type Fault = ReturnType<NonNullable<DevApiServerOptions["faults"]>>;
type RequestInfo = Parameters<NonNullable<DevApiServerOptions["faults"]>>[0];

export interface ApiFaults {
  of(request: RequestInfo): Fault;
}

/** Draws the faults of a world. */
export function drawFaults(
  machine: Pick<Machine, "chance" | "random" | "between" | "pick">,
): Omit<FaultRates, keyof OwnRates> {
  const share = (often: number, most: number) => (machine.chance(often) ? machine.random() * most : 0);
  const meanMs = (often: number, leastS: number, mostS: number) =>
    machine.chance(often) ? machine.between(leastS, mostS) * 1_000 : Number.POSITIVE_INFINITY;
  return {
    refusals: {
      401: share(0.1, 0.05),
      409: share(0.3, 0.1),
      410: share(0.2, 0.2),
      422: share(0.15, 0.1),
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
    expiredWatches: share(0.2, 0.5),
    killsAtEvictions: share(0.3, 0.5),
    killsAtWrites: share(0.3, 0.03),
    changesAtWrites: share(0.3, 0.3),
    slowStarts: share(0.3, 0.7),
    cutWatches: meanMs(0.5, 5, 60),
    stalledWatches: meanMs(0.06, 15, 45),
    apiOutages: meanMs(0.2, 15, 60),
    agentKills: meanMs(0.6, 10, 60),
    agentStops: meanMs(0.3, 20, 90),
    edits: meanMs(0.4, 4, 40),
    memoryChanges: meanMs(0.25, 5, 30),
    policyEdits: meanMs(0.6, 5, 30),
    budgetChanges: meanMs(0.3, 3, 30),
    drains: meanMs(0.15, 15, 60),
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

type PowerRates = Pick<FaultRates, "powerLosses" | "reboots" | "lostCommits" | "tornFiles">;
type DiskRates = Pick<FaultRates, "readOnlyDisks">;
type SecondAgentRates = Pick<FaultRates, "secondAgents">;
type HostRates = Pick<FaultRates, "hostChanges" | "hostDamages">;
type StopRates = Pick<FaultRates, "containerCrashes" | keyof StopFaults>;
type PoolRates = Pick<
  FaultRates,
  | "poolAgentKills"
  | "poolAgentStops"
  | "poolDriverRemovals"
  | "leaseMeddling"
  | "leaseRefusals"
  | "partitions"
  | "poolMeddling"
  | "killsAtPoolWrites"
>;
type PluginRates = Pick<
  FaultRates,
  "flaps" | "slowRestarts" | "lies" | "pluginReplacements" | "stubbornLiars"
>;
/** What is rare about claims to bind. */
export type BindingRates = Pick<
  FaultRates,
  "reallocations" | "otherNodes" | "unsortedParameters" | "killsAtPreparations"
>;
/** Rates that have chance of their own: worlds without these faults do not depend on how often they are drawn. */
export type OwnRates = PowerRates &
  DiskRates &
  PluginRates &
  HostRates &
  SecondAgentRates &
  StopRates &
  BindingRates &
  PoolRates;

export function drawPowerFaults(random: () => number): PowerRates {
  const meanMs = meanTimes(random);
  const share = (often: number) => (random() < often ? random() : 0);
  return {
    powerLosses: meanMs(0.15, 15, 60),
    reboots: meanMs(0.1, 20, 60),
    lostCommits: share(0.9),
    tornFiles: share(0.8),
  };
}

export function drawDiskFaults(random: () => number): DiskRates {
  return { readOnlyDisks: meanTimes(random)(0.15, 10, 60) };
}

export function drawPluginFaults(random: () => number): PluginRates {
  const meanMs = meanTimes(random);
  return {
    flaps: meanMs(0.15, 3, 15),
    lies: meanMs(0.2, 2, 10),
    pluginReplacements: meanMs(0.15, 2, 10),
    stubbornLiars: random(),
    slowRestarts: meanMs(0.1, 3, 15),
  };
}

/** In worlds in which the host changes, in-tree plugins run. @param random see `drawPowerFaults` */
export function drawHostFaults(random: () => number): HostRates {
  const meanMs = meanTimes(random);
  const hostChanges = meanMs(0.2, 1, 4);
  return { hostChanges, hostDamages: Number.isFinite(hostChanges) ? meanMs(0.8, 1, 10) : hostChanges };
}

export function drawSecondAgents(random: () => number): SecondAgentRates {
  return { secondAgents: meanTimes(random)(0.15, 10, 45) };
}

/** Faults of worlds in which the agent stops containers. @param random see `drawPowerFaults` */
export function drawStopFaults(random: () => number): StopRates {
  const share = (often: number, most: number) => (random() < often ? random() * most : 0);
  return {
    containerCrashes: meanTimes(random)(0.4, 3, 20),
    failedStops: share(0.5, 0.5),
    slowStops: share(0.5, 0.4),
    deafContainers: share(0.5, 0.6),
  };
}

/** Faults of worlds with binding conditions. @param random see `drawPowerFaults` */
export function drawBindingFaults(random: () => number): BindingRates {
  const share = (often: number, most: number) => (random() < often ? random() * most : 0);
  return {
    reallocations: share(0.3, 0.5),
    otherNodes: share(0.2, 0.4),
    unsortedParameters: share(0.2, 1),
    killsAtPreparations: share(0.4, 0.5),
  };
}

/** Faults of worlds with pools beyond the node. @param random see `drawPowerFaults` */
export function drawPoolFaults(random: () => number): PoolRates {
  const meanMs = meanTimes(random);
  return {
    poolAgentKills: meanMs(0.4, 25, 90),
    poolAgentStops: meanMs(0.4, 25, 90),
    poolDriverRemovals: meanMs(0.35, 20, 90),
    leaseMeddling: meanMs(0.4, 15, 60),
    leaseRefusals: meanMs(0.35, 15, 50),
    partitions: meanMs(0.3, 20, 60),
    poolMeddling: meanMs(0.4, 5, 30),
    killsAtPoolWrites: random() < 0.3 ? random() * 0.05 : 0,
  };
}

function meanTimes(random: () => number) {
  return (often: number, leastS: number, mostS: number) =>
    random() < often ? (leastS + random() * (mostS - leastS)) * 1_000 : Number.POSITIVE_INFINITY;
}

/** The rates of a world where nothing happens: as they are drawn if chance never has it. */
export const noFaults: FaultRates = {
  ...drawFaults({
    chance: () => false,
    random: () => 0,
    between: (least) => least,
    pick: ([first]) => first!,
  }),
  ...drawPowerFaults(() => 1),
  ...drawPluginFaults(() => 1),
  ...drawDiskFaults(() => 1),
  ...drawHostFaults(() => 1),
  ...drawSecondAgents(() => 1),
  ...drawStopFaults(() => 1),
  ...drawBindingFaults(() => 1),
  ...drawPoolFaults(() => 1),
};

/** Messages of a world: mostly quick, some slow, some lost. */
export function weatherOf(
  machine: Machine,
  rates: FaultRates,
  counts: Counts,
  onLost: (method: string, url: string) => void,
): Weather {
  const delay = (leastMs: number, mostMs: number) =>
    machine.chance(rates.slow)
      ? machine.random() * rates.slowestMs
      : leastMs + machine.random() * (mostMs - leastMs);
  return {
    localMs: () => 0.05 + machine.random() * 0.4,
    remoteMs: () => delay(0.5, 4),
    breaks: (method, url) => {
      const drawn = machine.random();
      if (drawn >= rates.lostRequests + rates.lostResponses) return undefined;
      const lost = drawn < rates.lostRequests ? "request" : "response";
      count(counts, lost === "request" ? "lostRequests" : "lostResponses");
      onLost(method, url);
      return lost;
    },
  };
}

/**
 * Refusals of the API server, and writes of another client just before those of the agent.
 * @param precede makes another client write to the Node
 */
export function apiFaultsOf(
  machine: Machine,
  rates: FaultRates,
  counts: Counts,
  precede: () => void,
): ApiFaults {
  return {
    of(request) {
      if (isNodeWrite(request) && machine.chance(rates.changesAtWrites)) {
        count(counts, "changesBeforeWrites");
        precede();
      }
      if (isWatch(request) && machine.chance(rates.expiredWatches)) {
        count(counts, "expired watches");
        const event = { type: "ERROR", object: statusObject(410) };
        return { status: 200, body: `${JSON.stringify(event)}\n` };
      }
      for (const [status, share] of Object.entries(rates.refusals)) {
        if (!canRefuse(request, Number(status)) || !machine.chance(share)) continue;
        count(counts, `refused ${status}`);
        return refusal(Number(status), Number(status) === 429 ? machine.pick(waits) : undefined);
      }
      return undefined;
    },
  };
}

/** Refuses all requests alike: the server is overloaded, or the agent's rights or credentials are gone. */
export function apiOutageOf(machine: Machine): ApiFaults {
  const status = machine.pick([401, 403, 429, 500, 503]);
  const wait = status === 429 ? machine.pick(waits) : undefined;
  return { of: ({ method, path }) => refusal(status, wait, `${method} ${path}`) };
}

// How a client is told to wait, in seconds: not, by the header, or by the body alone.
const waits = [undefined, { header: 1 }, { header: 5 }, { body: 2 }] as const;

function refusal(
  status: number,
  wait: (typeof waits)[number],
  what = "",
): Exclude<Fault, string | undefined> {
  const body = statusObject(status, what);
  if (wait === undefined) return { status, headers: {}, body };
  if ("header" in wait) return { status, headers: { "retry-after": `${wait.header}` }, body };
  return { status, headers: {}, body: { ...body, details: { retryAfterSeconds: wait.body } } };
}

function isNodeWrite({ method, resource }: RequestInfo): boolean {
  return method === "PATCH" && resource?.plural === "nodes";
}

function isWatch({ method, query }: RequestInfo): boolean {
  return method === "GET" && query.get("watch") === "true";
}

/** Returns whether a request can get a status: lists expire, and only writes conflict or are invalid. */
function canRefuse({ method, resource }: RequestInfo, status: number): boolean {
  if (status === 409 || status === 422) return method !== "GET";
  if (status === 410) return method === "GET" && resource !== undefined && resource.name === undefined;
  return true;
}

const reasons: Readonly<Record<number, string>> = {
  401: "Unauthorized",
  403: "Forbidden",
  409: "Conflict",
  410: "Expired",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
};

function statusObject(code: number, what = "") {
  // As the authorizer of kube-apiserver says it.
  const forbidden = `User "system:serviceaccount:nodekeeper:agent" cannot do resource "${what}"`;
  return {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason: reasons[code],
    message: code === 403 ? forbidden : "by chance",
    code,
  };
}
