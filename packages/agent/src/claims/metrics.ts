import { metricTable, type Registry } from "@nodekeeper/core/lib";
import type { ClaimRecord } from "./claim-records.ts";

/** Values read on each scrape. */
export interface ClaimReadings {
  records(): readonly Pick<ClaimRecord, "driver" | "state">[];
  plugins(): readonly { driver: string; isRegistered: boolean }[];
}

const states: readonly ClaimRecord["state"][] = ["preparing", "prepared", "unpreparing", "unprepared"];

/** The module's metrics. */
export function createClaimMetrics(registry: Registry, readings: ClaimReadings) {
  const { counter, histogram, scrapedBy } = metricTable(registry, "nodekeeper_claims_");
  scrapedBy("claims", "ResourceClaims by driver and state.", ["driver", "state"], () =>
    [...Map.groupBy(readings.records(), ({ driver }) => driver)].flatMap(([driver, records]) =>
      states.map(
        (state) => [{ driver, state }, records.filter((one) => one.state === state).length] as const,
      ),
    ),
  );
  scrapedBy(
    "registered",
    "Whether the kubelet has registered the agent as a driver's DRA plugin.",
    ["driver"],
    () => readings.plugins().map(({ driver, isRegistered }) => [{ driver }, Number(isRegistered)]),
  );
  return {
    operations: counter(
      "operations_total",
      "Claims that were prepared and unprepared for the kubelet, by outcome.",
      ["driver", "operation", "result"],
    ),
    seconds: histogram(
      "operation_seconds",
      "How long the kubelet waited for one claim, the driver's part included.",
      [0.02, 0.1, 0.5, 2, 10, 45],
      ["driver", "operation"],
    ),
  };
}

export type ClaimMetrics = ReturnType<typeof createClaimMetrics>;
