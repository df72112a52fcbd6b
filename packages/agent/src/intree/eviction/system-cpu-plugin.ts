import {
  noTopPods,
  notMet,
  type ObservedPod,
  type ThresholdAnswer,
  type TopAnswer,
  type TopQuestion,
} from "../../eviction/index.ts";
import type { InTreeAnswers, InTreePlugin, InTreePluginContext } from "./in-tree-plugin.ts";
import { RegularRounds } from "./regular-rounds.ts";
import { isReclaimed } from "./severity.ts";
import { CpuHistory, type CpuVerdict, evaluateCpu, type SystemCpuSettings } from "./system-cpu.ts";
import { VictimCooldown } from "./victim-cooldown.ts";
import { victimOrder } from "./victim-order.ts";

/**
 * Evicts pods under CPU pressure of the whole machine: most of the last samples exceeded the threshold for CPU usage or
 * load. After katalyst-core plugin/cpu/system_pressure.go. Pods with exclusive CPUs (dedicated_cores) are not evicted.
 */
export const systemCpuPressure: InTreePlugin<SystemCpuSettings> = {
  name: "system-cpu-pressure-eviction-plugin",
  onByDefault: false,
  answers: (context) => new SystemCpuPressure(context),
};

class SystemCpuPressure implements InTreeAnswers {
  readonly #context: InTreePluginContext<SystemCpuSettings>;
  readonly #history = new CpuHistory();
  readonly #rounds: RegularRounds;
  readonly #cooldown: VictimCooldown;
  #verdict: CpuVerdict | undefined;

  constructor(context: InTreePluginContext<SystemCpuSettings>) {
    this.#context = context;
    this.#rounds = new RegularRounds(context.parts);
    this.#cooldown = new VictimCooldown(context.parts);
  }

  async thresholdMet(_pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer> {
    if (this.#rounds.take()) await this.#look(signal);
    const verdict = evaluateCpu(this.#history, this.#context.settings());
    this.#verdict = verdict;
    if (!verdict) return this.#calm();
    return {
      ...notMet,
      // Soft pressure sets the condition and evicts no pod.
      metType: verdict.isHard ? "hard" : "none",
      scope: verdict.scope,
      thresholdValue: verdict.threshold,
      observedValue: verdict.observed,
      operator: "greaterThan",
      condition: { target: "node", name: "SystemCPU", effects: ["NoSchedule"], met: true },
    };
  }

  async getTopEvictionPods(
    pods: readonly ObservedPod[],
    { topN }: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer> {
    const { parts, missing } = this.#context;
    const { cooldownMs, gracePeriodSeconds } = this.#context.settings();
    if (!this.#verdict?.isHard || this.#cooldown.holds(cooldownMs)) return noTopPods;
    const activity = missing.valueOf("podCpu", await parts.readings.podActivity(signal));
    if (!activity) return noTopPods;
    const candidates = pods.filter(({ pod }) => pod.qosLevel !== "dedicated_cores");
    const ranked = victimOrder(candidates, (observed) => [
      isReclaimed(observed) ? 1 : 0,
      qosClassOrder[observed.pod.qosClass],
      -observed.pod.priority,
      activity.get(observed.pod.uid)?.cpu,
    ]);
    const victims = ranked.slice(0, topN).map(({ pod }) => pod);
    this.#cooldown.start(victims);
    return { pods: victims, gracePeriodSeconds };
  }

  // The last usage against the threshold that is checked, not met: most samples must exceed it.
  #calm(): ThresholdAnswer {
    const { usageUpper, loadUpper } = this.#context.settings();
    const { last } = this.#history;
    if (!last) return notMet;
    if (usageUpper > 0)
      return { ...notMet, scope: "usage", thresholdValue: usageUpper, observedValue: last.usage };
    if (loadUpper <= 0) return notMet;
    return { ...notMet, scope: "load", thresholdValue: loadUpper, observedValue: last.load };
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { parts, missing } = this.#context;
    const [cpu, load] = await Promise.all([
      parts.readings.cpu(signal),
      parts.readings.loadAverage(signal),
      // CPU usage of pods is the difference between two readings.
      parts.readings.podActivity(signal),
    ]);
    // The first reading has no CPU usage yet, which is not an error.
    const use = cpu.state === "missing" ? undefined : missing.valueOf("cpu", cpu);
    const tasks = missing.valueOf("loadAverage", load);
    if (!use || tasks === undefined) return;
    this.#history.add({ usage: use.share, load: tasks / use.cpus }, this.#context.settings().looks);
  }
}

// BestEffort pods are evicted first.
const qosClassOrder = { BestEffort: 2, Burstable: 1, Guaranteed: 0 } as const;
