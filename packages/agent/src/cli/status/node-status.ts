import type { EvictionMode } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { missingLines } from "@nodekeeper/api/wording";
import type { AgentConnection } from "../agent-connection.ts";
import { problemOf, shownState } from "../plugin-row.ts";
import { pluginsByName } from "../plugins-by-name.ts";

/** The period over which evictions are counted, milliseconds. */
export const EVICTIONS_MS = 3_600_000;

/** A problem and the object it concerns. */
export interface NamedProblem {
  name: string;
  message: string;
}

/** The state of one node's agent, as printed by `status`. Plain JSON; times are wall-clock milliseconds. */
export interface NodeStatus {
  node: string;
  version: string;
  startedAt: number;
  /** Failing health checks, among those of the readiness probe. */
  failingChecks: NamedProblem[];
  plugins: number;
  /** Plugins whose registration or last call failed. */
  failingPlugins: NamedProblem[];
  /** Content of plugins that is not published because it is invalid, refused by the API server, or too large. */
  refusedContent: NamedProblem[];
  /** Objects that cannot be written. */
  unpublished: NamedProblem[];
  /** Undefined if eviction is disabled. */
  eviction: EvictionStatus | undefined;
}

export interface EvictionStatus {
  /** Whether requests of plugins are only a dry run; `mixed`: of some. */
  mode: EvictionMode;
  /** `eviction.dryRunPlugins` of the agent. */
  dryRunPlugins: string[];
  /** Pods evicted in the last hour, as "namespace/name", in order. */
  evicted: string[];
  /** Pods that would have been evicted in the last hour. */
  dryRunEvicted: string[];
  /** Records of the last hour that are missing, in sentences. */
  missing: string[];
  /** The taints of each condition that is currently set, or its name if it has no taints. */
  conditions: string[];
}

/** Reads the state of an agent. Throws as `AgentConnection.get`. */
export async function readNodeStatus(agent: AgentConnection, now: number): Promise<NodeStatus> {
  const { nodeName, version, startedAt, health, eviction: summary } = await agent.get("node");
  const plugins = pluginsByName(await agent.get("plugins"));
  const objects = await agent.get("objects");
  return {
    ...{ node: nodeName, version, startedAt, plugins: plugins.length },
    failingChecks: health.checks.flatMap(({ name, ok, message }) => (ok ? [] : { name, message })),
    failingPlugins: plugins.flatMap((row) => {
      const isFailing = ["failing", "refused", "failed", "lost"].includes(shownState(row));
      return isFailing ? { name: row.name || (row.registrationSocket ?? "-"), message: problemOf(row) } : [];
    }),
    refusedContent: plugins.flatMap(({ name, problems }) => problems.map((message) => ({ name, message }))),
    unpublished: objects.flatMap(({ object, lastError }) =>
      lastError ? { name: object, message: lastError } : [],
    ),
    eviction: summary ? await readEviction(agent, summary, now) : undefined,
  };
}

type EvictionSummary = NonNullable<ApiAnswers["node"]["eviction"]>;

async function readEviction(
  agent: AgentConnection,
  { mode, dryRunPlugins }: EvictionSummary,
  now: number,
): Promise<EvictionStatus> {
  // By UID: a pod may be requested more than once, and another pod may have the same name.
  const evicted = new Map<string, string>();
  const dryRunEvicted = new Map<string, string>();
  let missing: string[] = [];
  const since = now - EVICTIONS_MS;
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: ApiAnswers["eviction/evictions"] = await agent.get("eviction/evictions", { since, after });
    for (const { uid, namespace, name, dryRun, outcome } of page.items) {
      if (dryRun) dryRunEvicted.set(uid, `${namespace}/${name}`);
      else if (outcome?.result === "terminated") evicted.set(uid, `${namespace}/${name}`);
    }
    after = page.next;
    // Without the start of the records, which every new agent would report for an hour.
    missing = missingLines({ oldest: null, gaps: page.coverage.gaps }, since);
  }
  const { conditions } = await agent.get("eviction/node");
  return {
    ...{ mode, dryRunPlugins },
    evicted: [...evicted.values()],
    dryRunEvicted: [...dryRunEvicted.values()],
    missing,
    conditions: conditions.flatMap(({ name, taints }) => (taints.length > 0 ? taints : [name])),
  };
}
