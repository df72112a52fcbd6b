import type { EvictionSettings } from "@nodekeeper/api/settings";
import { messageOf } from "@nodekeeper/core/lib";
import type { ObservedPod } from "../../eviction/index.ts";
import type { FilesystemState, Reading } from "../../host/index.ts";
import type { InTreePlugin, PluginContext, ThresholdValues } from "./in-tree-plugin.ts";
import { graceSeconds } from "./settings.ts";
import { isReclaimed, victimOrder } from "./victims.ts";

const SCOPE = "SystemRootfs";

export type RootfsPressureSettings = EvictionSettings["rootfsPressure"];

/** A shortage of space (bytes) or inodes. */
export interface RootfsShortage {
  of: "space" | "inodes";
  observed: number;
  threshold: number;
}

/**
 * Returns the shortage to act on, space before inodes; undefined if there is none. A filesystem that allocates inodes
 * dynamically never has a shortage of them.
 */
export function rootfsShortage(
  { sizeBytes, availableBytes, inodes, inodesFree }: FilesystemState,
  settings: RootfsPressureSettings,
): RootfsShortage | undefined {
  if (sizeBytes < settings.minimumCapacity) return undefined;
  const space = (settings.minimumFree / 100) * sizeBytes;
  if (availableBytes < space) return { of: "space", observed: availableBytes, threshold: space };
  const free = (settings.minimumInodesFree / 100) * inodes;
  return inodesFree < free ? { of: "inodes", observed: inodesFree, threshold: free } : undefined;
}

/**
 * Evicts pods with large writable layers under pressure of their filesystem: reclaimed pods first, then by usage. Based
 * on katalyst-core plugin/rootfs/rootfs_pressure.go; unlike there, pods with unknown usage are not selected.
 */
export const rootfsPressure: InTreePlugin<RootfsPressureSettings> = {
  name: "rootfs-pressure-eviction-plugin",
  onByDefault: false,
  pressure: (context) => ({
    async observe(_pods, signal) {
      const state = context.valueIn("rootfs", await rootfs(context, signal));
      if (!state) return {};
      const shortage = rootfsShortage(state, context.settings());
      if (!shortage) return { values: availableSpace(state, context.settings()) };
      const { of, threshold, observed } = shortage;
      const values = { scope: SCOPE, thresholdValue: threshold, observedValue: observed };
      return {
        values: { ...values, operator: "lessThan", unit: of === "space" ? "bytes" : "inodes" },
        metType: "hard",
        condition: SCOPE,
        pressure: shortage,
      };
    },
    async victims(pods, { of }: RootfsShortage, { topN }, signal) {
      const { podMinimumUsed, podMinimumInodes, gracePeriod } = context.settings();
      const disks = context.valueIn("podDisk", await context.disks.all(signal));
      if (!disks) return undefined;
      const usedBy = ({ pod }: ObservedPod) => disks.get(pod.uid)?.[of === "space" ? "bytes" : "inodes"];
      const minimum = of === "space" ? podMinimumUsed : podMinimumInodes;
      // Evicting a pod that uses nothing there would not help.
      const helpful = pods.filter((pod) => (usedBy(pod) ?? 0) >= Math.max(minimum, 1));
      const ranked = victimOrder(helpful, (pod) => [isReclaimed(pod) ? 1 : 0, usedBy(pod)]);
      return { pods: ranked.slice(0, topN), gracePeriodSeconds: graceSeconds(gracePeriod) };
    },
  }),
};

// Returns the available space and its threshold; undefined if it is not checked.
function availableSpace(
  { sizeBytes, availableBytes }: FilesystemState,
  { minimumFree, minimumCapacity }: RootfsPressureSettings,
): ThresholdValues | undefined {
  if (minimumFree === 0 || sizeBytes < minimumCapacity) return undefined;
  const values = { thresholdValue: (minimumFree / 100) * sizeBytes, observedValue: availableBytes };
  return { scope: SCOPE, ...values, operator: "lessThan", unit: "bytes" };
}

async function rootfs(
  { rootfsPath, readings, clock }: PluginContext<RootfsPressureSettings>,
  signal: AbortSignal,
): Promise<Reading<FilesystemState>> {
  try {
    return await readings.filesystem(await rootfsPath(signal), signal);
  } catch (error) {
    signal.throwIfAborted();
    return { state: "missing", at: clock.monotonic(), message: messageOf(error) };
  }
}
