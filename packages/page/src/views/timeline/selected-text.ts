import { podName, shown, at as timeText } from "../../text.ts";
import type { Pods } from "./bars.ts";
import { lookOf, type Mark } from "./marks.ts";
import type { Selection } from "./place.ts";
import { endLabel } from "./row-shapes.ts";

/**
 * Describes the selected item in words that do not change with the time, because screen readers announce them once.
 * Empty if unknown.
 */
export function selectedText(
  selection: Selection | undefined,
  { pods, marks }: { pods: Pods; marks: readonly Mark[] },
): string {
  if (!selection) return "";
  if (selection.kind === "reading")
    return `Selected: reading of ${shown(selection.scope || selection.plugin)} at ${timeText(selection.at)}`;
  if (selection.kind === "mark") {
    const mark = marks.find(({ id }) => id === selection.id);
    return mark
      ? `Selected: ${lookOf(mark.kind).word} at ${timeText(mark.at)}: ${shown(mark.title, 300)}`
      : "";
  }
  const pod = pods.get(selection.uid);
  if (!pod) return "";
  const name = shown(podName(pod), 600);
  if (selection.kind === "pod") return `Selected: pod ${name}`;
  const bar = pod.bars.get(selection.id);
  return bar ? `Selected: ${shown(bar.name) || "sandbox"} of ${name}, ${endLabel(bar) || "running"}` : "";
}
