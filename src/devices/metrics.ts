import { Counter, Gauge, type Registry } from "../lib/index.ts";
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
  live("published", "Devices that are published.", ({ devices }) => devices);
  live(
    "quarantined",
    "Devices that are held back because they break a rule.",
    ({ quarantined }) => quarantined,
  );
  live("slices", "ResourceSlices of a driver.", ({ slices }) => slices);
  return {
    messages: new Counter({
      name: `${PREFIX}messages_total`,
      help: "Messages of drivers.",
      labelNames: ["driver"],
      registers,
    }),
    writes: new Counter({
      name: `${PREFIX}slice_writes_total`,
      help: "Writes of ResourceSlices by operation and outcome.",
      labelNames: ["operation", "result"],
      registers,
    }),
    repairs: new Counter({
      name: `${PREFIX}repairs_total`,
      help: "Slices that somebody else changed or removed.",
      registers,
    }),
  };
}

export type DeviceMetrics = ReturnType<typeof createDeviceMetrics>;
