import type { EvictionPolicy } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { policySettings, readTyped, type Setting } from "@nodekeeper/api/settings";

/** A form field for a setting of the policy. */
export interface Field {
  readonly setting: Setting;
  /** Its name in addresses: "limits.perNode". */
  readonly name: string;
  readonly label: string;
  /** The format of its text: "duration, such as 30s"; empty for a boolean. */
  readonly unit: string;
  /** The setting's value in a policy, which may be from an earlier version. */
  readonly inPolicy: (policy: EvictionPolicy) => unknown;
}

export interface FieldGroup {
  readonly title: string;
  readonly fields: readonly Field[];
}

type Configuration = ApiAnswers["configuration"];

const SECTION = "eviction.";
const DURATION = "such as 30s, 5m or 1h";
/** The unit of counts, where 0 means no limit. */
export const COUNT = "number; 0: no limit";
const NAMES = "names, separated by commas";
const PLUGINS = `${NAMES}; * for all, -name for an exception`;

/** All settings of the policy, in the order: how many, which, how long, and then what. */
export const fieldGroups: readonly FieldGroup[] = [
  {
    title: "How many pods are evicted",
    fields: [
      field("burst", "Evictions started per round", "number; -1: no limit", ({ burst }) => burst),
      field("limits.perNode", "Evictions on the node", COUNT, limit("perNode")),
      field("limits.perNamespace", "Evictions in each namespace", COUNT, limit("perNamespace")),
      field("limits.perOwner", "Evictions of each controller", COUNT, limit("perOwner")),
      field("limits.window", "Window of these limits", DURATION, ({ limits }) => limits.windowMs),
    ],
  },
  {
    title: "Which pods, and for which plugins",
    fields: [
      field("dryRunPlugins", "Plugins in dry run", PLUGINS, (policy) => policy.dryRunPlugins),
      field("ranking", "Keys of the ranking, the most significant first", NAMES, (policy) => policy.ranking),
      field(
        "fallbackPlugins",
        "Plugins for which the ranking may select a pod",
        PLUGINS,
        (policy) => policy.fallbackPlugins,
      ),
      field("skip.labels", "Never evict pods with these labels", NAMES, ({ skip }) => skip.labelKeys),
      field(
        "skip.annotations",
        "Never evict pods with these annotations",
        NAMES,
        ({ skip }) => skip.annotationKeys,
      ),
      field("skip.daemonSets", "Never evict pods of DaemonSets", "", ({ skip }) => !skip.evictDaemonSetPods),
    ],
  },
  {
    title: "Waiting between evictions",
    fields: [
      field("cooldown", "Cooldown after an evicted pod is deleted", DURATION, (policy) => policy.cooldownMs),
      field(
        "longestRelease",
        "Longest wait for a terminating pod",
        DURATION,
        (policy) => policy.longestReleaseMs,
      ),
      field("releaseMargin", "Wait beyond its grace period", DURATION, (policy) => policy.releaseMarginMs),
      field(
        "failedEvictionPause",
        "Pause before a failed eviction is retried",
        DURATION,
        (policy) => policy.failedEvictionPauseMs,
      ),
      field(
        "forgetPluginAfter",
        "State of a disconnected plugin is kept",
        DURATION,
        (policy) => policy.forgetPluginAfterMs,
      ),
    ],
  },
  {
    title: "Grace periods that plugins request",
    fields: [
      field(
        "grace.shortest",
        "Shortest grace period",
        DURATION,
        ({ grace }) => grace.shortestSeconds * 1_000,
      ),
      field("grace.longest", "Longest grace period", DURATION, ({ grace }) => grace.longestSeconds * 1_000),
      field("grace.allowZero", "Allow 0, which kills immediately", "", ({ grace }) => grace.allowZero),
    ],
  },
  {
    title: "Conditions and taints",
    fields: [
      field(
        "conditionTransitionPeriod",
        "Conditions remain after they were last met",
        DURATION,
        (policy) => policy.conditionTransitionPeriodMs,
      ),
      field("taintEffects", "Allowed taint effects", NAMES, (policy) => policy.taintEffects),
      field("taintPrefix", "Prefix of taint keys", "DNS name", (policy) => policy.taintPrefix),
    ],
  },
];

export const fields: readonly Field[] = fieldGroups.flatMap((group) => group.fields);

/** Returns the texts of all fields for a configuration, by name. */
export function textsOf(configuration: Pick<Configuration, "eviction">): ReadonlyMap<string, string> {
  return new Map(fields.map(({ name, setting }) => [name, setting.toText(valueIn(configuration, name))]));
}

/** The typed changes, applied to the configuration in force. */
export interface EditedPolicy {
  /** The section `eviction` with the typed values. Invalid texts are replaced by the value in force. */
  eviction: Configuration["eviction"];
  /** Fields whose value differs from the one in force, with the value as in the configuration file. */
  changed: { field: Field; written: unknown }[];
  /** Why texts are invalid, by field name. */
  problems: ReadonlyMap<string, string>;
}

/** Applies typed texts, by field name, to the configuration in force. */
export function applyTexts(
  configuration: Pick<Configuration, "eviction">,
  typed: ReadonlyMap<string, string>,
): EditedPolicy {
  const eviction = structuredClone(configuration.eviction);
  const changed: EditedPolicy["changed"] = [];
  const problems = new Map<string, string>();
  for (const field of fields) {
    const text = typed.get(field.name);
    if (text === undefined) continue;
    const read = readTyped(field.setting, text);
    if ("problem" in read) {
      problems.set(field.name, read.problem);
    } else if (JSON.stringify(read.value) !== JSON.stringify(valueIn(configuration, field.name))) {
      changed.push({ field, written: read.written });
      setIn(eviction, field.name, read.value);
    }
  }
  return { eviction, changed, problems };
}

/** Returns the field's value in a recorded policy as text. Undefined if an earlier version did not record it. */
export function recordedText({ setting, inPolicy }: Field, policy: EvictionPolicy): string | undefined {
  try {
    const value = inPolicy(policy);
    return value === undefined ? undefined : setting.toText(value);
  } catch {
    return undefined;
  }
}

function field(name: string, label: string, unit: string, inPolicy: Field["inPolicy"]): Field {
  const setting = policySettings.find(({ path }) => path === SECTION + name);
  if (!setting) throw new TypeError(`no setting ${SECTION}${name}`);
  return { setting, name, label, unit, inPolicy };
}

// "No limit" is 0 in the configuration and null in the policy.
function limit(name: "perNode" | "perNamespace" | "perOwner"): Field["inPolicy"] {
  return ({ limits }) => limits[name] ?? 0;
}

function valueIn({ eviction }: Pick<Configuration, "eviction">, name: string): unknown {
  let node: unknown = eviction;
  for (const key of name.split(".")) node = (node as Record<string, unknown>)[key];
  return node;
}

function setIn(eviction: Configuration["eviction"], name: string, value: unknown): void {
  const keys = name.split(".");
  let node = eviction as unknown as Record<string, unknown>;
  for (const key of keys.slice(0, -1)) node = node[key] as Record<string, unknown>;
  node[keys.at(-1)!] = value;
}
