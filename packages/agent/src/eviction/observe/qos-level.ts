import type { QosLevel } from "@nodekeeper/api/decide";

/** The levels that an annotation can specify. */
type StatedLevel = Exclude<QosLevel, "unknown">;

/** An annotation with a value. */
export interface AnnotationValue {
  key: string;
  value: string;
}

/** Annotations that specify a level, in addition to katalyst's annotation. */
export type QosAnnotations = Readonly<Partial<Record<StatedLevel, readonly AnnotationValue[]>>>;

/** Returns the QoS level that a pod's annotations specify. */
export type QosLevelReader = (annotations: Readonly<Record<string, string>>) => QosLevel;

const QOS_LEVEL_KEY = "katalyst.kubewharf.io/qos_level";
const levels = ["reclaimed_cores", "shared_cores", "dedicated_cores", "system_cores"] as const;
const bitOf = (level: StatedLevel) => 1 << levels.indexOf(level);
const SHARED = bitOf("shared_cores");

/**
 * An annotation key, the levels that it can specify, and the levels that each of its values specifies. Levels are bits.
 */
interface KnownKey {
  key: string;
  ofLevels: number;
  byValue: Map<string, number>;
}

/**
 * Returns a reader of QoS levels for katalyst's annotation and those in `added`. It looks up each key once.
 *
 * 1. A pod has a level if an annotation has a value of that level, and no other annotation of that level has another
 *    value.
 * 2. A pod without any of the annotations has the default, `shared_cores`.
 * 3. The level is `unknown` if the annotations specify two levels, if one specifies a level and another one of that
 *    level has another value, or if none specifies a level and one of `shared_cores` has another value.
 *
 * Like QoSConfiguration of katalyst-core, pkg/config/generic/qos.go, except that a key may have several values for a
 * level, and that the result for two levels does not depend on the order of the checks.
 */
export function qosLevelReader(added: QosAnnotations = {}): QosLevelReader {
  const keys = keysOf(added);
  return (annotations) => {
    let matched = 0;
    let missed = 0;
    for (const { key, ofLevels, byValue } of keys) {
      const value = annotations[key];
      if (value === undefined) continue;
      const stated = byValue.get(value) ?? 0;
      matched |= stated;
      missed |= ofLevels & ~stated;
    }
    if (matched === 0) return missed & SHARED ? "unknown" : "shared_cores";
    if (matched & missed) return "unknown";
    return levels.find((level) => bitOf(level) === matched) ?? "unknown";
  };
}

function keysOf(added: QosAnnotations): KnownKey[] {
  const keys = new Map<string, KnownKey>();
  const state = (level: StatedLevel, { key, value }: AnnotationValue) => {
    const known = keys.get(key) ?? { key, ofLevels: 0, byValue: new Map<string, number>() };
    keys.set(key, known);
    known.ofLevels |= bitOf(level);
    known.byValue.set(value, (known.byValue.get(value) ?? 0) | bitOf(level));
  };
  for (const level of levels) {
    state(level, { key: QOS_LEVEL_KEY, value: level });
    for (const annotation of added[level] ?? []) state(level, annotation);
  }
  return [...keys.values()];
}
