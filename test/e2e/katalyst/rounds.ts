import type { KubeObject } from "@nodekeeper/core/kube";
import { seededRandom } from "../../../packages/testing/src/runtime/seeded-random.ts";

/** A pod in the API server's JSON. */
export interface GeneratedPod extends KubeObject {
  metadata: {
    uid: string;
    namespace: string;
    name: string;
    labels: Record<string, string>;
    annotations: Record<string, string>;
    deletionTimestamp?: string;
    ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string; controller: true }[];
  };
  spec: {
    nodeName: string;
    priority: number;
    terminationGracePeriodSeconds: number;
    containers: { name: string; image: string; resources: object }[];
  };
  status: { phase: string };
}

/** What a plugin returns; pods are named by UID. */
export interface GeneratedPlugin {
  evictPods: { uid: string; force: boolean; grace: number | null }[];
  threshold: {
    metType: "none" | "soft" | "hard";
    scope: string;
    grace: number;
    condition: { name: string; effects: string[] } | null;
  };
  top: { uids: string[]; grace: number | null };
}

export interface GeneratedRound {
  pods: GeneratedPod[];
  plugins: Record<string, GeneratedPlugin>;
  /** Scopes for the comparison of the orders of all pods, by UID. */
  scopes: Record<string, string>;
}

/** Rounds one after another, 5 s apart, of one manager. */
export interface GeneratedRun {
  burst: number;
  dryRun: string[];
  skipLabels: string[];
  skipAnnotations: string[];
  rounds: GeneratedRound[];
}

/** The node of all pods. */
export const NODE = "worker-1";

const SKIP_LABEL = "example.com/keep";
const SKIP_ANNOTATION = "example.com/stay";
const levels = ["reclaimed_cores", "shared_cores", "dedicated_cores", "system_cores", "unheard_of_cores"];
const scopes = ["cpu", "memory", "disk-io"];
const graces = [null, null, null, 0, 5, 15, 60, 7_200, -1];
const plugins = ["alpha", "beta", "gamma"];

/** Returns the runs of a seed: most of one round, some of two, in which pods terminate or were deleted. */
export function generateRuns(seed: number, count: number): GeneratedRun[] {
  const random = new Choices(seed);
  return Array.from({ length: count }, () => generateRun(random));
}

function generateRun(random: Choices): GeneratedRun {
  const pods = Array.from({ length: random.upTo(3, 14) }, (_, index) => generatePod(random, index));
  const first = generateRound(random, pods, generatePlugins(random, pods));
  const rounds = [first];
  if (random.chance(0.4)) {
    // Of the same pods, or without some that were deleted meanwhile.
    const left = random.chance(0.4) ? pods : pods.filter(() => random.chance(0.6));
    const isSame = random.chance(0.7);
    const next = isSame ? againWithOtherGraces(random, first.plugins) : generatePlugins(random, left);
    rounds.push(generateRound(random, left, next));
  }
  return {
    burst: random.of([-1, -1, 1, 2, 3, 3]),
    dryRun: random.of([[], [], [], [], ["alpha"], ["beta", "gamma"], ["*"], ["*", "-beta"]]),
    skipLabels: random.chance(0.5) ? [SKIP_LABEL] : [],
    skipAnnotations: random.chance(0.5) ? [SKIP_ANNOTATION] : [],
    rounds,
  };
}

function generatePod(random: Choices, index: number): GeneratedPod {
  const name = `${random.of(["web", "batch", "cache"])}-${index}`;
  const annotations: Record<string, string> = {};
  if (random.chance(0.6)) annotations["katalyst.kubewharf.io/qos_level"] = random.of(levels);
  if (random.chance(0.1)) annotations[SKIP_ANNOTATION] = "";
  if (random.chance(0.1)) annotations["katalyst.kubewharf.io/pod_soft_evict_notify"] = "true";
  if (random.chance(0.05)) annotations["kubernetes.io/config.source"] = random.of(["api", "file"]);
  if (random.chance(0.03)) annotations["kubernetes.io/config.mirror"] = "0";
  const kind = random.of(["ReplicaSet", "ReplicaSet", "StatefulSet", "DaemonSet", undefined]);
  const owner = `${kind}-${random.upTo(1, 2)}`;
  const owners = kind && [
    { apiVersion: "apps/v1", kind, name: owner, uid: owner, controller: true as const },
  ];
  return {
    metadata: {
      uid: `uid-${index}`,
      namespace: random.of(["default", "prod", "jobs"]),
      name,
      labels: random.chance(0.1) ? { [SKIP_LABEL]: "yes" } : {},
      annotations,
      ...(random.chance(0.05) ? { deletionTimestamp: "2026-11-22T00:00:00Z" } : {}),
      ...(owners ? { ownerReferences: owners } : {}),
    },
    spec: {
      nodeName: NODE,
      priority: random.of([-10, 0, 0, 0, 10, 100, 1_000, 2_000_001_000]),
      terminationGracePeriodSeconds: random.of([15, 30, 30, 120]),
      containers: [{ name: "main", image: "main", resources: resourcesOf(random) }],
    },
    status: { phase: random.of(["Running", "Running", "Running", "Running", "Pending", "Succeeded"]) },
  };
}

// BestEffort, Burstable, Guaranteed.
function resourcesOf(random: Choices): object {
  const some = { cpu: "1", memory: "1Gi" };
  return random.of([{}, { requests: { cpu: "1" } }, { requests: some, limits: some }]);
}

function generatePlugins(random: Choices, pods: readonly GeneratedPod[]): Record<string, GeneratedPlugin> {
  const used = plugins.filter(() => random.chance(0.6));
  return Object.fromEntries(used.map((name) => [name, generatePlugin(random, pods)]));
}

function generatePlugin(random: Choices, pods: readonly GeneratedPod[]): GeneratedPlugin {
  const uids = pods.map(({ metadata }) => metadata.uid);
  const share = random.of([0, 0, 0.2, 0.4, 0.9]);
  const named = uids.filter(() => random.chance(share));
  if (random.chance(0.03)) named.push("uid-of-none");
  const isForced = random.of([0, 0, 0.3, 1]);
  const metType = random.of(["none", "none", "soft", "hard", "hard"] as const);
  const condition = random.chance(0.3) ? { name: random.of(["Hot", "Full"]), effects: ["NoSchedule"] } : null;
  return {
    evictPods: named.map((uid) => ({ uid, force: random.chance(isForced), grace: random.of(graces) })),
    threshold: { metType, scope: random.of(scopes), grace: random.of([-1, 0, 0, 0, 3_600]), condition },
    top: {
      uids: random.shuffled(uids).slice(0, random.of([0, 1, 1, 2, 3])),
      grace: random.of([null, null, 15, 60]),
    },
  };
}

function againWithOtherGraces(
  random: Choices,
  before: GeneratedRound["plugins"],
): Record<string, GeneratedPlugin> {
  const other = (plugin: GeneratedPlugin): GeneratedPlugin => ({
    ...plugin,
    evictPods: plugin.evictPods.map((one) => ({ ...one, grace: random.of([null, 10, 20]) })),
  });
  return Object.fromEntries(Object.entries(before).map(([name, plugin]) => [name, other(plugin)]));
}

// Pods with a soft request have its scope, so that the order has them as the round does; the others any.
function generateRound(
  random: Choices,
  pods: GeneratedPod[],
  asked: Record<string, GeneratedPlugin>,
): GeneratedRound {
  const soft = new Set(
    Object.values(asked).flatMap(({ evictPods }) =>
      evictPods.flatMap(({ uid, force }) => (force ? [] : [uid])),
    ),
  );
  const scopeOf = (uid: string) => (soft.has(uid) ? "soft" : random.of(["force", "soft", ...scopes]));
  const ranked = Object.fromEntries(pods.map(({ metadata: { uid } }) => [uid, scopeOf(uid)]));
  return { pods, plugins: asked, scopes: ranked };
}

/** Choices that depend on the seed only. */
class Choices {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  chance(probability: number): boolean {
    return this.#random() < probability;
  }

  upTo(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1));
  }

  of<T>(values: readonly T[]): T {
    return values[this.upTo(0, values.length - 1)]!;
  }

  shuffled<T>(values: readonly T[]): T[] {
    const keyed = values.map((value) => ({ value, key: this.#random() }));
    return keyed.sort((a, b) => a.key - b.key).map(({ value }) => value);
  }
}
