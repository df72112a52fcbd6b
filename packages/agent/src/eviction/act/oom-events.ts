import { ContainerOutOfMemory } from "@nodekeeper/api/errors";
import { roundedBytes } from "@nodekeeper/core/lib";
import { aboutPod } from "../about-pod.ts";
import type { EvictionContext } from "../context.ts";
import type { OomKill } from "../records/pod-history.ts";

export type OomEventsOptions = Pick<EvictionContext, "events" | "metrics" | "log">;

/** Reports each OOM-killed container with an Event on its pod, a log line and a metric. */
export class OomEvents {
  readonly #options: OomEventsOptions;

  constructor(options: OomEventsOptions) {
    this.#options = options;
  }

  report({ pod, exit, limit, usageBytes }: OomKill): void {
    const { events, metrics, log } = this.#options;
    const { namespace, name } = pod;
    metrics.oomKills.inc();
    log.warn(
      {
        errorId: ContainerOutOfMemory.id,
        pod: { namespace, name },
        container: exit.name,
        exitCode: exit.exitCode,
        limit,
        usageBytes,
      },
      "container OOM-killed",
    );
    const code = exit.exitCode === null ? "" : ` (exit code ${exit.exitCode})`;
    const texts = [`Container ${exit.name} was OOM-killed${code}.`];
    if (limit !== undefined) texts.push(limit ? `Memory limit: ${limit}.` : "It has no memory limit.");
    if (usageBytes !== undefined)
      texts.push(`Last known memory usage of the pod: ${roundedBytes(usageBytes)}.`);
    events.record({
      type: "Warning",
      reason: "ContainerOOMKilled",
      message: texts.join(" "),
      regarding: aboutPod(pod),
    });
  }
}
