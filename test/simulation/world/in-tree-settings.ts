import { freeBytes } from "./host-memory.ts";

export const MEMORY_PLUGIN = "system-memory-pressure-eviction-plugin";
/** The condition of `MEMORY_PLUGIN`. */
export const MEMORY_CONDITION = "MemoryPressure";
export const PID_PLUGIN = "pid-overuse-eviction-plugin";
export const SYSTEM_REPORTER = "system-reporter-plugin";

/** Free memory below which there is pressure, in percent. */
export const LEAST_FREE = 5;
/** `some avg10` of the workload from which on its pods stall, in percent. */
export const MOST_STALLS = 15;
export const MOST_PIDS = 500;
/** Stalls of this length make reclaimed pods candidates, and three times as long all pods. */
export const PRESSURE_MS = 4_000;
/** How long a verdict about memory is used. */
export const DETECTION_MS = 2_000;

/** Settings below `eviction` of the in-tree plugins, which act within the time of a world. */
export const inTreeSettings = {
  inTreePlugins: [MEMORY_PLUGIN, PID_PLUGIN],
  systemMemory: {
    freeMinimum: freeBytes(LEAST_FREE),
    workloadPressure: MOST_STALLS,
    pressedPods: 1,
    pressureDuration: `${PRESSURE_MS}ms`,
    detectionPeriod: `${DETECTION_MS}ms`,
    cooldown: "5s",
    reclaimedGracePeriod: "2s",
  },
  pidOveruse: { threshold: MOST_PIDS },
};
