import type { EvictionPolicy } from "../decide/index.ts";

/** A setting that differs between two policies. */
export interface PolicyDifference {
  /** The path in recorded policies, for example "skip.labelKeys". */
  field: string;
  recorded: unknown;
  replayed: unknown;
}

/**
 * Returns the settings that differ between a recorded policy, possibly of another version, and another policy. Sorted
 * by field.
 */
export function policyDifferences(recorded: EvictionPolicy, replayed: EvictionPolicy): PolicyDifference[] {
  const [then, now] = [fieldsOf(recorded), fieldsOf(replayed)];
  const fields = [...new Set([...then.keys(), ...now.keys()])].sort();
  return fields.flatMap((field) => {
    const pair = { field, recorded: then.get(field), replayed: now.get(field) };
    return JSON.stringify(pair.recorded) === JSON.stringify(pair.replayed) ? [] : [pair];
  });
}

function fieldsOf(value: object, prefix = ""): Map<string, unknown> {
  const fields = new Map<string, unknown>();
  for (const [key, each] of Object.entries(value)) {
    const isGroup = typeof each === "object" && each !== null && !Array.isArray(each);
    if (!isGroup) fields.set(`${prefix}${key}`, each);
    else for (const [name, inner] of fieldsOf(each, `${prefix}${key}.`)) fields.set(name, inner);
  }
  return fields;
}
