import { stopped, systemClock } from "@nodekeeper/core/lib";
import { rightOf, tally } from "../test/e2e/support/audit-log.ts";
import { type ControlPlane, startControlPlane } from "../test/e2e/support/control-plane.ts";
import { serviceAccountUser } from "../test/e2e/support/nodekeeper-install.ts";
import { missingParts } from "../test/e2e/support/parts.ts";
import type { Figure } from "./figures.ts";
import { FleetAgents } from "./fleet-agents.ts";
import { cpuSecondsOf, openWatches, Rates, rssMbOf } from "./fleet-load.ts";

const OUTAGE_MS = 30_000;
/** Each node's report changes so often. */
const REPORT_MS = 60_000;
/** A pod of a DaemonSet takes so long from its end to the start of the next one's process, at random. */
const RESTART_MS = { min: 3_000, max: 10_000 };
/** As `maxUnavailable` of the DaemonSet. */
const MAX_UNAVAILABLE = 0.1;
const SETTLED_MS = 5_000;
const LONGEST_RETURN_MS = 600_000;

export interface FleetOptions {
  /** How many nodes have one. */
  agents: number;
  /** How long the steady state is measured. */
  steadyMs: number;
}

/**
 * Measures the load of a fleet of agents on one real kube-apiserver: at rest, during a rolling restart as of a
 * DaemonSet, and after an outage of the server. Request times and counts come from the audit log of the server, watch
 * counts from its metrics.
 */
export async function benchFleet({ agents: count, steadyMs }: FleetOptions): Promise<Figure[]> {
  const missing = missingParts("etcd", "openssl", "kubeApiServer", "kubectl", "cnrDefinition");
  if (missing) throw new Error(`npm run test:e2e makes the parts that are missing: ${missing}`);
  const cluster = await startControlPlane();
  const agents = new FleetAgents(cluster, count);
  const ending = new AbortController();
  try {
    await agents.prepare();
    const before = await openWatches(cluster);
    const first = await measured(cluster, "start", () =>
      agents.inParallel(batchOf(count), (node) => agents.start(node)),
    );
    const watches = sumOf(await settledWatches(cluster, before));
    const changing = agents.changeEvery(REPORT_MS, ending.signal);
    const steady = await measured(cluster, "at rest", () => systemClock.sleep(steadyMs));
    const rss = rssMbOf(cluster.apiServer.pid);
    const rollout = await measured(cluster, "rolling restart", () =>
      agents.inParallel(batchOf(count), async (node) => {
        await agents.stop(node);
        await systemClock.sleep(RESTART_MS.min + Math.random() * (RESTART_MS.max - RESTART_MS.min));
        await agents.start(node);
      }),
    );
    await settledWatches(cluster, before);
    const outage = await returnAfterOutage(cluster, agents, watches, async () => {
      ending.abort(stopped("the server returns"));
      await changing;
    });
    const back = "return after 30 s";
    return [
      { name: `watches of an agent, ${count} agents`, value: watches / count, unit: "", budget: 4 },
      {
        name: "requests of an agent's start",
        value: first.rates.requests.length / count,
        unit: "",
        budget: 20,
      },
      {
        name: "requests of an agent in an hour, besides reports",
        value: ownRequests(steady, count),
        unit: "",
        budget: 60,
      },
      ...loadFigures("at rest, a report a minute", steady),
      { name: "at rest: RSS of the API server", value: rss, unit: "MB" },
      ...loadFigures("rolling restart", rollout),
      ...peakFigures("rolling restart", rollout, count),
      ...loadFigures(back, outage),
      ...peakFigures(back, outage, count),
      { name: `${back}: until all is watched and published`, value: outage.seconds, unit: "s", budget: 60 },
    ];
  } finally {
    ending.abort(stopped("over"));
    await agents.end();
    await cluster.stop();
  }
}

interface Measured {
  seconds: number;
  /** Of the API server. */
  cpuSeconds: number;
  rates: Rates;
}

const batchOf = (count: number) => Math.max(Math.floor(count * MAX_UNAVAILABLE), 1);
const sumOf = (watches: ReadonlyMap<string, number>) =>
  [...watches.values()].reduce((sum, each) => sum + each, 0);

/** What the agents asked of the server during some work. */
async function measured(cluster: ControlPlane, what: string, work: () => Promise<void>): Promise<Measured> {
  const since = Date.now();
  const cpuBefore = cpuSecondsOf(cluster.apiServer.pid);
  await work();
  return measuredSince(cluster, what, since, cpuBefore);
}

function measuredSince(cluster: ControlPlane, what: string, since: number, cpuBefore: number): Measured {
  const cpuSeconds = cpuSecondsOf(cluster.apiServer.pid) - cpuBefore;
  const seconds = (Date.now() - since) / 1_000;
  const rates = new Rates(cluster.audit.requests({ user: serviceAccountUser, since }));
  const codes = Object.groupBy(rates.requests, ({ responseStatus }) => String(responseStatus?.code));
  const byCode = Object.entries(codes).map(([code, some]) => `${code}: ${some?.length}`);
  console.error(
    `${what}: ${rates.requests.length} requests in ${seconds.toFixed(0)} s (${byCode.join(", ")})`,
  );
  console.error(tally(rates.requests));
  return { seconds, cpuSeconds, rates };
}

/** The watches that agents have open, by resource, once their number does not change. */
async function settledWatches(cluster: ControlPlane, before: ReadonlyMap<string, number>) {
  for (let last = -1; ; ) {
    const open = await openWatches(cluster);
    for (const [resource, count] of before) open.set(resource, (open.get(resource) ?? 0) - count);
    if (sumOf(open) === last) return open;
    last = sumOf(open);
    await systemClock.sleep(SETTLED_MS);
  }
}

/** Kills the server, starts it after a while, and measures until every agent watches and is published again. */
async function returnAfterOutage(
  cluster: ControlPlane,
  agents: FleetAgents,
  watches: number,
  stopChanges: () => Promise<void>,
): Promise<Measured> {
  await cluster.apiServer.kill();
  await systemClock.sleep(OUTAGE_MS);
  await stopChanges();
  const since = Date.now();
  cluster.apiServer.start();
  await cluster.ready();
  const isBack = async () =>
    sumOf(await openWatches(cluster)) >= watches && (await agents.unpublished()) === 0;
  while (!(await isBack())) {
    if (Date.now() - since > LONGEST_RETURN_MS) throw new Error("not all agents came back");
    await systemClock.sleep(1_000);
  }
  // The server is a new process: all of its CPU time is of this.
  return measuredSince(cluster, "return", since, 0);
}

function loadFigures(name: string, { rates, seconds, cpuSeconds }: Measured): Figure[] {
  return [
    { name: `${name}: requests a second`, value: rates.requests.length / seconds, unit: "/s" },
    { name: `${name}: CPU of the API server`, value: (cpuSeconds / seconds) * 100, unit: "% of one" },
  ];
}

// A few agents' starts are peaks by themselves.
function peakFigures(name: string, { rates }: Measured, count: number): Figure[] {
  const budget = count < 200 ? {} : { budget: 3 };
  return [
    { name: `${name}: requests in the busiest second`, value: rates.peak, unit: "" },
    { name: `${name}: busiest second to mean`, value: rates.peak / rates.mean, unit: "", ...budget },
  ];
}

/** Requests of one agent in an hour, besides those that write a changed report. */
function ownRequests({ rates, seconds }: Measured, count: number): number {
  const own = rates.requests.filter((request) => rightOf(request) !== "patch customnoderesources/status");
  return (own.length / count / seconds) * 3_600;
}
