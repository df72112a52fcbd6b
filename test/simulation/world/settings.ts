import type { Machine } from "../machine/machine.ts";
import { inTreeSettings } from "./in-tree-settings.ts";

/** Settings of the agent that an operator changes: the file has them in sections, as `sectionsOf` writes them. */
export interface Settings {
  syncPeriodMs: number;
  /** 0: no limit. */
  limitPerNode: number;
  limitPerOwner: number;
  limitWindowMs: number;
  burst: number;
  cooldownS: number;
  transitionS: number;
  dryRunPlugins: readonly string[];
  skipLabels: readonly string[];
  killer: "evictionApi" | "deletion" | "containerStop";
  /** By QoS class or level. */
  killerRules: readonly string[];
  /** Takes effect after a restart. */
  taintPrefix: string;
}

/** Prefixes of taints that the agent may have been configured with. */
export const taintPrefixes = ["nodekeeper.dev", "pressure.example.com"] as const;
/** Taints of other clients. One of them has a prefix of the agent's. */
export const theirTaints: readonly string[] = ["example.org/maintenance", "nodekeeper.dev/Manual"];

/** `eviction.grace.longest`, in seconds: longer than what any pod has. */
export const LONGEST_GRACE_S = 30;

/** A label of some pods, which an operator protects and releases. */
export const KEEP_LABEL = "example.org/keep";

/** Draws the settings with which an agent is started first. */
export function drawSettings(machine: Machine): Settings {
  return {
    syncPeriodMs: machine.pick([1_000, 2_000, 5_000]),
    limitPerNode: machine.pick([0, 1, 3, 10]),
    limitPerOwner: machine.pick([0, 0, 0, 2]),
    limitWindowMs: machine.pick([30, 120, 600]) * 1_000,
    burst: 3,
    cooldownS: 5,
    transitionS: 20,
    dryRunPlugins: machine.chance(0.1) ? ["*"] : [],
    skipLabels: [],
    killer: "evictionApi",
    killerRules: [],
    taintPrefix: taintPrefixes[0],
  };
}

/**
 * Returns the section `eviction` of the agent's configuration.
 * @param policyFile path of the file with policies; undefined if there is none
 * @param hasInTree whether in-tree plugins run
 */
export function evictionSection(
  settings: Settings,
  policyFile: string | undefined,
  hasInTree: boolean,
): Record<string, unknown> {
  const { syncPeriodMs, limitPerNode, limitPerOwner, limitWindowMs, burst, cooldownS, transitionS } =
    settings;
  const { dryRunPlugins, skipLabels, killer, killerRules, taintPrefix } = settings;
  return {
    syncPeriod: `${syncPeriodMs}ms`,
    ...(hasInTree ? inTreeSettings : { inTreePlugins: [] }),
    policies: { files: policyFile === undefined ? [] : [policyFile] },
    conditionTransitionPeriod: `${transitionS}s`,
    cooldown: `${cooldownS}s`,
    limits: { window: `${limitWindowMs}ms`, perNode: limitPerNode, perOwner: limitPerOwner },
    grace: { shortest: "0s", longest: `${LONGEST_GRACE_S}s` },
    ...{ burst, dryRunPlugins, skip: { labels: skipLabels } },
    ...{ killer, killerRules, taintPrefix },
  };
}

/** Rules that select the killer of a part of the pods: `stoppedSpec` has the QoS classes. */
export const stoppingRules: readonly (readonly string[])[] = [
  ["BestEffort=containerStop"],
  ["Burstable=containerStop"],
  ["reclaimed_cores=containerStop", "Burstable=containerStop"],
];

/** Returns whether a plugin is in dry run. As documented, its own name takes precedence over "*". */
export function isDryRun({ dryRunPlugins }: Pick<Settings, "dryRunPlugins">, plugin: string): boolean {
  const own = dryRunPlugins.find((pattern) => pattern === plugin || pattern === `-${plugin}`);
  return own === undefined ? dryRunPlugins.includes("*") : own === plugin;
}

/** Returns whether all plugins are in dry run, so that eviction writes nothing. */
export function isFullDryRun({ dryRunPlugins }: Settings): boolean {
  return dryRunPlugins.includes("*") && !dryRunPlugins.some((pattern) => pattern.startsWith("-"));
}
