import type { EvictPodAnswer, PodReference, ThresholdAnswer, TopQuestion } from "@nodekeeper/api/decide";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import { type EvictionSource, noPods, noTopPods, notMet, type ObservedPod } from "../../eviction/index.ts";
import type { HostReadings, Reading } from "../../host/index.ts";
import type { PodDisks, PodMemories } from "../../pod-usage/index.ts";
import type { KnownPlugin } from "../enabled-plugins.ts";
import { type InTreeEvictionMetrics, readingValues } from "./missing-readings.ts";

/** Readings and clients for in-tree eviction plugins. */
export interface EvictionPluginParts {
  readings: HostReadings;
  memories: PodMemories;
  disks: Pick<PodDisks, "all">;
  /** Path of the filesystem of writable layers. Rejects if it is unknown. */
  rootfsPath: (signal: AbortSignal) => Promise<string>;
  /**
   * Returns all pods of this node, including those that can't be evicted. If undefined, only the round's candidates are
   * known.
   */
  nodePods?: () => readonly ObservedPod[];
  /** Allocatable resources in this node's CustomNodeResource. */
  allocatable: ResourceListReader;
  /** Period of regular rounds, milliseconds. */
  roundPeriodMs: () => number;
  clock: Clock;
  log: Logger;
  metrics: InTreeEvictionMetrics;
}

/** Reads a resource list, such as a CustomNodeResource's allocatable, with the time of the reading. */
export type ResourceListReader = (
  signal: AbortSignal,
) => Reading<Record<string, string>> | Promise<Reading<Record<string, string>>>;

/** Dependencies of one in-tree eviction plugin. */
export interface PluginContext<Settings> extends EvictionPluginParts {
  /** Returns the current settings, which may change between calls. */
  settings: () => Settings;
  /**
   * Returns the value of a reading; undefined if it is missing, which is counted and logged.
   * @param name for example "memory"
   */
  valueIn: <T>(name: string, reading: Reading<T>) => T | undefined;
}

/** The values of a threshold. */
export type ThresholdValues = Partial<
  Pick<ThresholdAnswer, "scope" | "observedValue" | "thresholdValue" | "operator" | "unit">
>;

/** The observation of a rule in a round. */
export interface Observation<Pressure> {
  /** Also recorded for a threshold that is not met; undefined if unknown. */
  values?: ThresholdValues | undefined;
  /** Default "none". */
  metType?: ThresholdAnswer["metType"];
  /** Seconds for which the threshold must be met. Default 0. */
  graceSeconds?: number;
  /** The Node condition that is met. */
  condition?: string;
  /** Passed to `victims` while the threshold is confirmed. If undefined, no pod is selected. */
  pressure?: Pressure | undefined;
}

/** The pods to evict for a pressure, in order. */
export interface Victims {
  pods: readonly ObservedPod[];
  /** Seconds; null for the grace period of the pod spec. */
  gracePeriodSeconds: number | null;
}

/** The rule of a plugin with a threshold. */
export interface PressureRule<Pressure> {
  observe(pods: readonly ObservedPod[], signal: AbortSignal): Promise<Observation<Pressure>>;
  /** Returns the pods to evict; undefined if readings are missing. */
  victims(
    pods: readonly ObservedPod[],
    pressure: Pressure,
    question: TopQuestion,
    signal: AbortSignal,
  ): Promise<Victims | undefined>;
  /** How long no other pod is selected after one was, milliseconds. Default: no cooldown. */
  cooldownMs?(): number;
  crossed?: EvictionSource["crossed"];
}

/** The rule of a plugin that names pods regardless of pressure. Returns undefined if readings are missing. */
export type OveruseRule = (
  pods: readonly ObservedPod[],
  signal: AbortSignal,
) => Promise<EvictPodAnswer[] | undefined>;

/** Declaration of an in-tree eviction plugin. It has one of the two rules. */
export interface InTreePlugin<Settings> extends KnownPlugin {
  // biome-ignore lint/suspicious/noExplicitAny: only the rule itself reads its pressure
  pressure?: (context: PluginContext<Settings>) => PressureRule<any>;
  overuse?: (context: PluginContext<Settings>) => OveruseRule;
}

/** Returns the plugin as an EvictionSource for rounds. */
export function inTreeSource<Settings>(
  { name, pressure, overuse }: InTreePlugin<Settings>,
  parts: EvictionPluginParts,
  settings: () => Settings,
): EvictionSource {
  const context = { ...parts, settings, valueIn: readingValues(name, parts.log, parts.metrics) };
  const none: EvictionSource = {
    name,
    getEvictPods: async () => noPods,
    thresholdMet: async () => notMet,
    getTopEvictionPods: async () => noTopPods,
  };
  if (pressure) return { ...none, ...pressureCalls(pressure(context), parts) };
  const named = overuse?.(context);
  if (!named) return none;
  return {
    ...none,
    getEvictPods: async (pods, signal) => ({ pods: (await named(pods, signal)) ?? [], condition: null }),
  };
}

// Returns the calls of a plugin with a pressure rule. A round observes once, in GetEvictPods, because a condition that
// is set without a met threshold counts only in the response to that call, as in katalyst. ThresholdMet uses the same
// observation. If the observation failed or was late, it is not repeated in the round, because rules that count rounds
// would count a second round. GetTopEvictionPods selects pods for the pressure that was observed last.
function pressureCalls<Pressure>(
  rule: PressureRule<Pressure>,
  parts: EvictionPluginParts,
): Partial<EvictionSource> {
  const cooldown = new VictimCooldown(parts);
  let pressure: Pressure | undefined;
  let ofRound: Promise<Observation<Pressure>> | undefined;
  const observe = async (...[pods, signal]: Parameters<PressureRule<Pressure>["observe"]>) => {
    const observed = await rule.observe(pods, signal);
    signal.throwIfAborted();
    return observed;
  };
  return {
    async getEvictPods(pods, signal) {
      ofRound = observe(pods, signal);
      const { metType = "none", condition } = await ofRound;
      return { pods: [], condition: metType === "none" ? nodeCondition(condition) : null };
    },
    async thresholdMet(pods, signal) {
      const observation = ofRound ?? observe(pods, signal);
      ofRound = undefined;
      const { values, metType = "none", graceSeconds = 0, condition, ...observed } = await observation;
      pressure = observed.pressure;
      return {
        ...{ ...notMet, ...values, metType, gracePeriodSeconds: graceSeconds },
        condition: nodeCondition(condition),
      };
    },
    async getTopEvictionPods(pods, question, signal) {
      if (pressure === undefined || cooldown.holds(rule.cooldownMs?.() ?? 0)) return noTopPods;
      const victims = await rule.victims(pods, pressure, question, signal);
      if (!victims) return noTopPods;
      const named = victims.pods.map(({ pod }) => pod);
      cooldown.start(named);
      return { pods: named, gracePeriodSeconds: victims.gracePeriodSeconds };
    },
    ...(rule.crossed ? { crossed: (sample) => rule.crossed!(sample) } : {}),
  };
}

function nodeCondition(name: string | undefined): ThresholdAnswer["condition"] {
  return name === undefined ? null : { target: "node", name, effects: ["NoSchedule"], met: true };
}

/**
 * The cooldown of a plugin that has selected pods. It applies only if one of them was evicted: if all are still on the
 * node and none is terminating, for example because of a PodDisruptionBudget, other pods can be selected immediately.
 */
class VictimCooldown {
  readonly #parts: Pick<EvictionPluginParts, "clock" | "nodePods">;
  #uids: ReadonlySet<string> = new Set();
  #namedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: Pick<EvictionPluginParts, "clock" | "nodePods">) {
    this.#parts = parts;
  }

  /** Starts the cooldown for the pods that the plugin selected. An empty list starts no cooldown. */
  start(victims: readonly PodReference[]): void {
    if (victims.length === 0) return;
    this.#uids = new Set(victims.map(({ uid }) => uid));
    this.#namedAt = this.#parts.clock.monotonic();
  }

  /** @param cooldownMs duration from the selection, milliseconds */
  holds(cooldownMs: number): boolean {
    const { clock, nodePods } = this.#parts;
    if (clock.monotonic() - this.#namedAt >= cooldownMs) return false;
    return nodePods === undefined || this.#wasEvicted(nodePods());
  }

  #wasEvicted(nodePods: readonly ObservedPod[]): boolean {
    const untouched = nodePods.filter(({ pod }) => this.#uids.has(pod.uid) && pod.deletionTimestamp === null);
    return untouched.length < this.#uids.size;
  }
}
