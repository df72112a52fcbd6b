import type { EvictionPolicy } from "../../eviction/index.ts";

/** One setting that two policies don't share. */
export interface PolicyDifference {
  /** As records name it: "skip.labelKeys". */
  field: string;
  recorded: unknown;
  replayed: unknown;
}

/** What differs between the policy of a record and another one, by the names of fields. A record may be of another version. */
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
