import { metricTable, type Registry } from "@nodekeeper/core/lib";
import type { Pod } from "../runtime/index.ts";
import type { LifecycleContext } from "./context.ts";
import { hintStates } from "./metrics.ts";
import type { LifecycleParts } from "./parts.ts";

const containerStates = ["created", "running", "exited", "unknown"] as const;

/** Registers the metrics that are read at each scrape. */
export function scrapeLifecycle(
  registry: Registry,
  { clock }: LifecycleContext,
  parts: LifecycleParts,
): void {
  const { records, progress, limiter, events, hints, pacing } = parts;
  const { scraped, scrapedBy } = metricTable(registry, "nodekeeper_lifecycle_");
  scraped(
    "relist_in_flight_seconds",
    "Age of the relist in progress, in seconds; 0 if there is none.",
    () => {
      const { inFlight } = progress.relist;
      return inFlight ? (clock.monotonic() - inFlight.startedAt) / 1000 : 0;
    },
  );
  scraped("stale_pods", "Number of pods whose last inspection failed.", () => records.failed);
  scraped(
    "overdue_calls",
    "Number of calls to the runtime that exceeded lifecycle.inspectionPatience and have no response.",
    () => limiter.overdue,
  );
  scraped("inspection_limit", "Current limit of concurrent pod inspections.", () => limiter.limit);
  scraped("log_events", "Number of events in the event log.", () => events.length);
  scraped("consumers", "Number of consumers of the event log.", () => events.consumers);
  scraped(
    "slowest_consumer_events",
    "Number of events that the slowest consumer has not read.",
    () => events.slowest,
  );
  scraped(
    "relist_period_seconds",
    "Current relist period in seconds: from lifecycle.relistPeriod to lifecycle.eventedRelistPeriod.",
    () => pacing.periodMs / 1000,
  );
  scraped("pods", "Number of pods in the container runtime.", () => records.emitted().length);
  scrapedBy(
    "hint_stream_state",
    "State of the runtime's container event stream: 1 for the current state.",
    ["state"],
    () => hintStates.map((state) => [{ state }, state === hints.state ? 1 : 0]),
  );
  scrapedBy("containers", "Number of containers and sandboxes by state.", ["kind", "state"], () => {
    // Sets all states, so that a state without containers is reported as 0.
    const counts = countContainers(records.emitted());
    return ["container", "sandbox"].flatMap((kind) =>
      containerStates.map((state) => [{ kind, state }, counts.get(`${kind} ${state}`) ?? 0] as const),
    );
  });
}

function countContainers(pods: readonly Pod[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { containers, sandboxes } of pods) {
    for (const { kind, state } of [...containers, ...sandboxes]) {
      const key = `${kind} ${state}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  return counts;
}
