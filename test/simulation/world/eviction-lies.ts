import type { EvictionCondition, NamedPod, ThresholdState } from "@nodekeeper/sdk";
import type { Machine } from "../machine/machine.ts";

/** What an eviction plugin lies about. Its messages are valid, and the agent must refuse what is wrong in them. */
export const evictionLies = ["strangers", "doubles", "tooMany", "numbers", "conditions"] as const;
export type EvictionLie = (typeof evictionLies)[number];

/** A condition at or beyond the limits of what is valid, and whether it becomes a taint of the Node. */
export interface FalseCondition {
  condition: EvictionCondition;
  isTaint: boolean;
}

const NODE_EFFECT = "NoSchedule";

export const falseConditions: readonly FalseCondition[] = [
  { condition: { name: "x".repeat(63), effects: [NODE_EFFECT] }, isTaint: true },
  { condition: { name: "x".repeat(64), effects: [NODE_EFFECT] }, isTaint: false },
  { condition: { name: "no name", effects: [NODE_EFFECT] }, isTaint: false },
  { condition: { name: "OddEffects", effects: ["NoExecute", "Sideways", ""] }, isTaint: false },
  {
    condition: { name: "TwoEffects", effects: ["PreferNoSchedule", NODE_EFFECT, NODE_EFFECT] },
    isTaint: true,
  },
  { condition: { name: "NoEffects", effects: [] }, isTaint: false },
  {
    condition: { name: "OfLevel", target: "customNodeResource", effects: ["reclaimed_cores/NoSchedule"] },
    isTaint: false,
  },
  // That of another plugin, which may report it or not.
  { condition: { name: "Pressurepressure0", effects: ["PreferNoSchedule"] }, isTaint: true },
];

const GRACES = [-1, Number.MIN_SAFE_INTEGER, 0, Number.MAX_SAFE_INTEGER];
const VALUES = [0, -1e308, Number.NaN, Number.POSITIVE_INFINITY];

/** Makes answers of eviction plugins wrong. Honest ones stay as they are, and draw no chance. */
export class EvictionLies {
  readonly #machine: Machine;
  readonly #allPods: () => Iterable<NamedPod>;

  /** @param allPods returns all pods that ever were, also those that nobody may evict */
  constructor(machine: Machine, allPods: () => Iterable<NamedPod>) {
    this.#machine = machine;
    this.#allPods = allPods;
  }

  /** Returns the pods that a plugin names if it was offered some and would name `chosen`. */
  pods(lie: EvictionLie | undefined, chosen: readonly NamedPod[], offered: readonly NamedPod[]): NamedPod[] {
    if (lie === "doubles") return [...chosen, ...chosen];
    if (lie === "tooMany") return offered.toReversed();
    if (lie !== "strangers") return [...chosen];
    const strangers = Array.from({ length: this.#machine.between(1, 3) }, () => this.#stranger(offered));
    return [...strangers, ...chosen];
  }

  /** Returns a threshold that is met below its value, with values that are no numbers, and with any grace period. */
  threshold(lie: EvictionLie | undefined, state: ThresholdState): ThresholdState {
    if (lie !== "numbers") return state;
    const machine = this.#machine;
    return {
      ...state,
      observedValue: machine.pick(VALUES),
      thresholdValue: machine.pick([1, ...VALUES]),
      gracePeriodSeconds: machine.pick(GRACES),
    };
  }

  /** Returns the grace period that a plugin requests for a pod: another one each time that it names the pod. */
  grace(lie: EvictionLie | undefined): { gracePeriodSeconds?: number } {
    return lie === "numbers" || lie === "doubles" ? { gracePeriodSeconds: this.#machine.pick(GRACES) } : {};
  }

  /** Returns a pod that was not offered, or one that was under other names. */
  #stranger(offered: readonly NamedPod[]): NamedPod {
    const machine = this.#machine;
    const uids = new Set(offered.map(({ uid }) => uid));
    const others = [...this.#allPods()].filter(({ uid }) => !uids.has(uid));
    const other = machine.pick(others);
    if (offered.length === 0 || machine.chance(0.4)) return other;
    const { uid, namespace, name } = machine.pick(offered);
    return machine.pick([
      { uid: other.uid, namespace, name },
      { uid: `${uid}-of-yesterday`, namespace, name },
      { uid, namespace: "kube-system", name },
      { uid, namespace, name: other.name },
    ]);
  }
}
