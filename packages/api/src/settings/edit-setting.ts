import { evictionPolicySettings } from "./eviction-policy.ts";
import { readLeaf, wrongValue } from "./leaf.ts";
import { section } from "./section.ts";
import { type Setting, settingsIn } from "./setting.ts";

/** Settings of the eviction policy, in the order of the configuration file. */
export const policySettings: readonly Setting[] = settingsIn(
  section("", evictionPolicySettings),
  "eviction.",
);

/** A typed value as written in the file and as the agent reads it, or the reason why it is invalid. */
export type TypedValue = { written: unknown; value: unknown } | { problem: string };

/** Parses a text like the setting's flag. */
export function readTyped(setting: Setting, text: string): TypedValue {
  const written = setting.fromText(text.trim());
  const value = readLeaf(setting, written);
  return value === undefined ? { problem: wrongValue(written, setting.expected) } : { written, value };
}
