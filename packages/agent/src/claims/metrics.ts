import { Counter, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";
import type { ClaimRecord } from "./claim-records.ts";

const PREFIX = "nodekeeper_claims_";

/** What is read at each scrape. */
export interface ClaimReadings {
  records(): readonly Pick<ClaimRecord, "driver" | "state">[];
  plugins(): readonly { driver: string; isRegistered: boolean }[];
}

export function createClaimMetrics(registry: Registry, readings: ClaimReadings) {
  const registers = [registry];
  const states: readonly ClaimRecord["state"][] = ["preparing", "prepared", "unpreparing", "unprepared"];
  new Gauge({
    name: `${PREFIX}claims`,
    help: "ResourceClaims by driver and state.",
    labelNames: ["driver", "state"],
    registers,
    collect() {
      this.reset();
      for (const [driver, records] of Map.groupBy(readings.records(), (record) => record.driver)) {
        for (const state of states)
          this.set({ driver, state }, records.filter((record) => record.state === state).length);
      }
    },
  });
  new Gauge({
    name: `${PREFIX}registered`,
    help: "Whether the kubelet has registered the agent as a driver's DRA plugin.",
    labelNames: ["driver"],
    registers,
    collect() {
      this.reset();
      for (const { driver, isRegistered } of readings.plugins()) this.set({ driver }, Number(isRegistered));
    },
  });
  return {
    operations: new Counter({
      name: `${PREFIX}operations_total`,
      help: "Claims that were prepared and unprepared for the kubelet, by outcome.",
      labelNames: ["driver", "operation", "result"],
      registers,
    }),
    seconds: new Histogram({
      name: `${PREFIX}operation_seconds`,
      help: "How long the kubelet waited for one claim, the driver's part included.",
      labelNames: ["driver", "operation"],
      buckets: [0.02, 0.1, 0.5, 2, 10, 45],
      registers,
    }),
  };
}

export type ClaimMetrics = ReturnType<typeof createClaimMetrics>;
