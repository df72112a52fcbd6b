import { PodReadings } from "../host/index.ts";
import { PodUsages } from "../pod-usage/index.ts";
import { apiRoute } from "../server/index.ts";
import type { AgentContext } from "./context.ts";
import type { LifecyclePart } from "./lifecycle.ts";
import type { AgentPart } from "./part.ts";

/** Builds the API route of the pods' usage, which is read on demand. */
export function podUsagePart(
  { configuration, clock }: AgentContext,
  lifecycle: LifecyclePart | undefined,
): AgentPart {
  const usages = new PodUsages({
    cgroups: new PodReadings({ root: configuration().hostRoot, clock }),
    runtimeStats: lifecycle?.runtime,
    runningPods: () => (lifecycle ? runningPodsOf(lifecycle) : []),
    clock,
  });
  return { runnables: [], checks: [], routes: [apiRoute("pods/usage", (_, signal) => usages.read(signal))] };
}

function runningPodsOf({ generator: { statuses } }: LifecyclePart): string[] {
  const isRunning = (uid: string) =>
    statuses.get(uid).status.sandboxes.some(({ state }) => state === "running");
  return statuses.uids().filter(isRunning);
}
