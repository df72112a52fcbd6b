import type { Live } from "./live.ts";

/**
 * Returns a notice that container states may be stale. Undefined if the container runtime responds in time, or lifecycle is
 * off. Details are left out, because they change every second.
 */
export function runtimeNotice({ node }: Pick<Live, "node">): string | undefined {
  const check = node?.health.checks.find(({ name }) => name === "PodLifecycleReady");
  return (
    check?.warning && "Containers may have changed unseen: see the health check PodLifecycleReady on Now."
  );
}
