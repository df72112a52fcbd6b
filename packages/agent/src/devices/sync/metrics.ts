import { metricTable, type Registry } from "@nodekeeper/core/lib";
import type { DriverStatus } from "./status.ts";

const states: readonly DriverStatus["state"][] = [
  "waiting",
  "streaming",
  "unresponsive",
  "ended",
  "failing",
  "none",
];

/** The module's metrics. `drivers` is read on each scrape. */
export function createDeviceMetrics(registry: Registry, drivers: () => readonly DriverStatus[]) {
  const { counter, scrapedBy } = metricTable(registry, "nodekeeper_devices_");
  const perDriver = (name: string, help: string, read: (driver: DriverStatus) => number) =>
    scrapedBy(name, help, ["driver"], () => drivers().map((one) => [{ driver: one.name }, read(one)]));
  scrapedBy(
    "drivers",
    "Registered drivers by the state of their stream; unresponsive: the process does not answer.",
    ["state"],
    () => states.map((state) => [{ state }, drivers().filter((driver) => driver.state === state).length]),
  );
  perDriver("published", "Devices that the API server has in complete pools.", ({ devices }) => devices);
  perDriver(
    "quarantined",
    "Devices that are not published because they break a rule or the API server refuses them.",
    ({ quarantined }) => quarantined,
  );
  perDriver("slices", "ResourceSlices of a driver that the agent published.", ({ slices }) => slices.length);
  perDriver(
    "foreign_slices",
    "ResourceSlices in a driver's pools that another client published.",
    ({ foreign }) => foreign.length,
  );
  perDriver("write_failing", "Whether a driver's slices can't be written.", ({ writeError }) =>
    Number(writeError !== undefined),
  );
  return {
    messages: counter("messages_total", "Messages of drivers.", ["driver"]),
    writes: counter(
      "slice_writes_total",
      "Writes of ResourceSlices and dry runs of them, by operation and outcome.",
      ["operation", "result"],
    ),
    repairs: counter("repairs_total", "Repairs of drivers' slices that another client changed or deleted."),
  };
}

export type DeviceMetrics = ReturnType<typeof createDeviceMetrics>;
