import type { Live } from "./live.ts";

/**
 * Returns a notice that container states may be stale. Undefined if the container runtime responds in time, or if
 * `lifecycle` is off. The notice contains no details, because they change every second.
 */
export function runtimeNotice({ node }: Pick<Live, "node">): string | undefined {
  const check = node?.health.checks.find(({ name }) => name === "PodLifecycleReady");
  return (
    check?.warning && "Containers may have changed unseen: see the health check PodLifecycleReady on Now."
  );
}
