import { metricTable, type Registry } from "@nodekeeper/core/lib";
import type { ClaimRecord, ClaimRecords } from "./claim-records.ts";
import type { DriverStates } from "./driver-state.ts";

const states: readonly ClaimRecord["state"][] = ["preparing", "prepared", "unpreparing", "unprepared"];

/** The module's metrics. `records` and `drivers` are read on each scrape. */
export function createClaimMetrics(
  registry: Registry,
  { records, drivers }: { records: Pick<ClaimRecords, "all">; drivers: Pick<DriverStates, "list"> },
) {
  const { counter, histogram, scrapedBy } = metricTable(registry, "nodekeeper_claims_");
  scrapedBy("claims", "ResourceClaims by driver and state.", ["driver", "state"], () =>
    [...Map.groupBy(records.all(), ({ driver }) => driver)].flatMap(([driver, ofDriver]) =>
      states.map(
        (state) => [{ driver, state }, ofDriver.filter((one) => one.state === state).length] as const,
      ),
    ),
  );
  scrapedBy(
    "registered",
    "Whether the kubelet has registered the agent as a driver's DRA plugin.",
    ["driver"],
    () =>
      drivers
        .list()
        .flatMap(({ name: driver, plugin }) =>
          plugin ? [[{ driver }, Number(plugin.registration.state === "registered")] as const] : [],
        ),
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
