import type { Live } from "./live.ts";

/**
 * Says that the states of containers may be old. Undefined if the container runtime answers in time, or lifecycle is off.
 * The text has no details, which change each second.
 */
export function runtimeNotice({ node }: Pick<Live, "node">): string | undefined {
  const check = node?.health.checks.find(({ name }) => name === "PodLifecycleReady");
  return (
    check?.warning && "Containers may have changed unseen: see the health check PodLifecycleReady on Now."
  );
}
