import { Counter, Gauge, type Registry } from "@nodekeeper/core/lib";
import type { StreamState } from "./driver-stream.ts";

const PREFIX = "nodekeeper_devices_";

/** What is read at each scrape. */
export interface DeviceReadings {
  drivers(): readonly {
    name: string;
    state: StreamState;
    quarantined: number;
    devices: number;
    slices: number;
    foreign: number;
    isFailing: boolean;
  }[];
}

export function createDeviceMetrics(registry: Registry, readings: DeviceReadings) {
  const registers = [registry];
  const states: readonly StreamState[] = ["waiting", "streaming", "ended", "failing", "none"];
  new Gauge({
    name: `${PREFIX}drivers`,
    help: "Registered drivers by the state of their stream.",
    labelNames: ["state"],
    registers,
    collect() {
      const drivers = readings.drivers();
      for (const state of states)
        this.set({ state }, drivers.filter((driver) => driver.state === state).length);
    },
  });
  const live = (
    name: string,
    help: string,
    read: (driver: ReturnType<DeviceReadings["drivers"]>[number]) => number,
  ) =>
    new Gauge({
      name: `${PREFIX}${name}`,
      help,
      labelNames: ["driver"],
      registers,
      collect() {
        this.reset();
        for (const driver of readings.drivers()) this.set({ driver: driver.name }, read(driver));
      },
    });
  live("published", "Devices that the API server has in complete pools.", ({ devices }) => devices);
  live(
    "quarantined",
    "Devices that are not published because they break a rule or the API server refuses them.",
    ({ quarantined }) => quarantined,
  );
  live("slices", "ResourceSlices of a driver that the agent published.", ({ slices }) => slices);
  live(
    "foreign_slices",
    "ResourceSlices in a driver's pools that another client published.",
    ({ foreign }) => foreign,
  );
  live("write_failing", "Whether a driver's slices can't be written.", ({ isFailing }) => Number(isFailing));
  return {
    messages: new Counter({
      name: `${PREFIX}messages_total`,
      help: "Messages of drivers.",
      labelNames: ["driver"],
      registers,
    }),
    writes: new Counter({
      name: `${PREFIX}slice_writes_total`,
      help: "Writes of ResourceSlices and dry runs of them, by operation and outcome.",
      labelNames: ["operation", "result"],
      registers,
    }),
    repairs: new Counter({
      name: `${PREFIX}repairs_total`,
      help: "Slices that another client changed or deleted.",
      registers,
    }),
  };
}

export type DeviceMetrics = ReturnType<typeof createDeviceMetrics>;
