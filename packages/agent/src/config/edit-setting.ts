// Settings as texts of a form. Pure: the page bundles it.
import { readLeaf } from "./leaf.ts";
import { evictionPolicySettings } from "./policy-settings.ts";
import { wrongValue } from "./problem.ts";
import { section } from "./section.ts";
import { type Setting, settingsIn } from "./setting.ts";

export type { Setting } from "./setting.ts";

/** The settings that make the eviction policy, in the order of the configuration file. */
export const policySettings: readonly Setting[] = settingsIn(
  section("", evictionPolicySettings),
  "eviction.",
);

/** A typed value: as the file has it and as the agent reads it, or why the agent would refuse it. */
export type TypedValue = { written: unknown; value: unknown } | { problem: string };

/** Reads a text as the flag of the setting would be read. */
export function readTyped(setting: Setting, text: string): TypedValue {
  const written = setting.fromText(text.trim());
  const value = readLeaf(setting, written);
  return value === undefined ? { problem: wrongValue(written, setting.expected) } : { written, value };
}
