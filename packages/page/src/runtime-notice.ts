import type { Live } from "./live.ts";
import { shown } from "./text.ts";

/** Returns why the states of containers may be old. Undefined if the container runtime answers, or lifecycle is off. */
export function runtimeNotice({ node }: Pick<Live, "node">): string | undefined {
  const warning = node?.health.checks.find(({ name }) => name === "PodLifecycleReady")?.warning;
  return warning && `Containers may have changed unseen: ${shown(warning, 300)}`;
}
