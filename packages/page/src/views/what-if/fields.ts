import type { EvictionPolicy } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { policySettings, readTyped, type Setting, setAt, valueAt } from "@nodekeeper/api/settings";

/** A form field for a setting of the policy. */
export interface Field {
  readonly setting: Setting;
  /** Its name in addresses: "limits.perNode". */
  readonly name: string;
  readonly label: string;
  /** The format of its text: "duration, such as 30s"; empty for a boolean. */
  readonly unit: string;
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
      field("burst", "Evictions started per round", "number; -1: no limit"),
      field("limits.perNode", "Evictions on the node", COUNT),
      field("limits.perNamespace", "Evictions in each namespace", COUNT),
      field("limits.perOwner", "Evictions of each controller", COUNT),
      field("limits.window", "Window of these limits", DURATION),
    ],
  },
  {
    title: "Which pods, and for which plugins",
    fields: [
      field("dryRunPlugins", "Plugins in dry run", PLUGINS),
      field("ranking", "Keys of the ranking, the most significant first", NAMES),
      field("fallbackPlugins", "Plugins for which the ranking may select a pod", PLUGINS),
      field("skip.labels", "Never evict pods with these labels", NAMES),
      field("skip.annotations", "Never evict pods with these annotations", NAMES),
      field("skip.daemonSets", "Never evict pods of DaemonSets", ""),
    ],
  },
  {
    title: "Waiting between evictions",
    fields: [
      field("cooldown", "Cooldown after an evicted pod is deleted", DURATION),
      field("longestRelease", "Longest wait for a terminating pod", DURATION),
      field("releaseMargin", "Wait beyond its grace period", DURATION),
      field("failedEvictionPause", "Pause before a failed eviction is retried", DURATION),
      field("forgetPluginAfter", "Grace timers of a disconnected plugin are kept", DURATION),
    ],
  },
  {
    title: "Grace periods that plugins request",
    fields: [
      field("grace.shortest", "Shortest grace period", DURATION),
      field("grace.longest", "Longest grace period", DURATION),
      field("grace.allowZero", "Allow 0, which kills immediately", ""),
    ],
  },
  {
    title: "Conditions and taints",
    fields: [
      field("conditionTransitionPeriod", "Conditions remain after they were last met", DURATION),
      field("taintEffects", "Allowed taint effects", NAMES),
      field("taintPrefix", "Prefix of taint keys", "DNS name"),
    ],
  },
];

export const fields: readonly Field[] = fieldGroups.flatMap((group) => group.fields);

/** Returns the texts of all fields for a configuration, by name. */
export function textsOf(configuration: Pick<Configuration, "eviction">): ReadonlyMap<string, string> {
  return new Map(
    fields.map(({ name, setting }) => [name, setting.toText(valueAt(configuration, setting.path))]),
  );
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
  const edited = structuredClone({ eviction: configuration.eviction });
  const changed: EditedPolicy["changed"] = [];
  const problems = new Map<string, string>();
  for (const field of fields) {
    const text = typed.get(field.name);
    if (text === undefined) continue;
    const read = readTyped(field.setting, text);
    if ("problem" in read) {
      problems.set(field.name, read.problem);
    } else if (JSON.stringify(read.value) !== JSON.stringify(valueAt(configuration, field.setting.path))) {
      changed.push({ field, written: read.written });
      setAt(edited, field.setting.path, read.value);
    }
  }
  return { ...edited, changed, problems };
}

/** Returns the field's value in a recorded policy as text. */
export function recordedText({ setting, name }: Field, policy: EvictionPolicy): string {
  return setting.toText(inPolicy(policy, name));
}

function inPolicy(policy: EvictionPolicy, name: string): unknown {
  const { skip, grace } = policy;
  switch (name) {
    // "No limit" is 0 in the configuration and null in the policy.
    case "limits.perNode":
    case "limits.perNamespace":
    case "limits.perOwner":
      return valueAt(policy, name) ?? 0;
    case "skip.labels":
      return skip.labelKeys;
    case "skip.annotations":
      return skip.annotationKeys;
    case "skip.daemonSets":
      return !skip.evictDaemonSetPods;
    case "grace.shortest":
      return grace.shortestSeconds * 1_000;
    case "grace.longest":
      return grace.longestSeconds * 1_000;
    default:
      return valueAt(policy, name) ?? valueAt(policy, `${name}Ms`);
  }
}

function field(name: string, label: string, unit: string): Field {
  const setting = policySettings.find(({ path }) => path === SECTION + name);
  if (!setting) throw new TypeError(`no setting ${SECTION}${name}`);
  return { setting, name, label, unit };
}
