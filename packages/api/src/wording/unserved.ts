import type { MetThreshold, UnservedReason, UnservedThreshold } from "../decide/index.ts";
import { heldText } from "./held.ts";
import { counted, refusalWord } from "./text.ts";
import { timeOf } from "./time.ts";

// The message does not include these for the given reasons.
const prefixes: Partial<Record<UnservedReason, string>> = {
  failed: "the call for pods failed: ",
  late: "late: ",
};

/**
 * Describes why no pod may be selected for a threshold, and which pods the plugin could not choose. Examples: "named
 * none of 1 pod; 2 pods not offered: owner limit until 2026-11-21T21:05:00.000Z", "late: deadline of 5 s exceeded".
 */
export function unservedText(unserved: Omit<UnservedThreshold, "since">): string {
  const { reason, message } = unserved;
  return `${prefixes[reason] ?? ""}${message}${notOfferedText(unserved)}`;
}

/**
 * Describes what a confirmed threshold without a selected pod waits for: "on hold: cooldown …", or as `unservedText`.
 * Undefined if pods are selected for it.
 * @param now wall-clock milliseconds
 */
export function whyNoPodText(
  { held, unserved }: Pick<MetThreshold, "held" | "unserved">,
  now: number,
): string | undefined {
  if (!held) return unserved && unservedText(unserved);
  return `on hold: ${heldText(held, now)}${unserved ? notOfferedText(unserved) : ""}`;
}

// The limit of the node is the reason for all pods, and is said already.
function notOfferedText({ reason, notOffered = [] }: Omit<UnservedThreshold, "since">): string {
  if (reason === "nodeLimit" || notOffered.length === 0) return "";
  const pods = notOffered.reduce((sum, one) => sum + one.pods, 0);
  const whys = notOffered.map((one) => {
    const why = `${refusalWord(one.reason)}${one.until === null ? "" : ` until ${timeOf(one.until)}`}`;
    return notOffered.length === 1 ? why : `${one.pods} (${why})`;
  });
  return `; ${counted(pods, "pod")} not offered: ${whys.join(", ")}`;
}
