import { messageOf } from "@nodekeeper/core/lib";
import {
  noTopPods,
  notMet,
  type ObservedPod,
  type ThresholdAnswer,
  type TopAnswer,
  type TopQuestion,
} from "../../eviction/index.ts";
import type { FilesystemState } from "../../host/index.ts";
import type { PodDisk } from "../../pod-usage/index.ts";
import type { InTreeAnswers, InTreePlugin, InTreePluginContext } from "./in-tree-plugin.ts";
import { isReclaimed } from "./severity.ts";
import { victimOrder } from "./victim-order.ts";

/** Thresholds for the filesystem of writable layers, and the selection of pods. */
export interface RootfsPressureSettings {
  /** Available space below which there is pressure, percent; 0: not checked. */
  minimumFreePercent: number;
  /** Free inodes below which there is pressure, percent; 0: not checked. */
  minimumInodesFreePercent: number;
  /** Smaller filesystems are not checked, bytes, since a percentage of them is little. */
  minimumCapacityBytes: number;
  /** Pods that use less in their writable layers are not evicted for space, bytes. */
  podMinimumUsedBytes: number;
  /** Pods that use fewer inodes are not evicted for inodes. */
  podMinimumInodes: number;
  /** Seconds; null for the grace period of the pod spec. */
  gracePeriodSeconds: number | null;
}

/** A shortage of space (bytes) or inodes. */
export interface RootfsShortage {
  of: "space" | "inodes";
  observed: number;
  threshold: number;
}

/**
 * The shortage to act on, space before inodes; undefined if there is none. A filesystem that allocates inodes dynamically
 * never has a shortage of them.
 */
export function rootfsShortage(
  { sizeBytes, availableBytes, inodes, inodesFree }: FilesystemState,
  settings: RootfsPressureSettings,
): RootfsShortage | undefined {
  if (sizeBytes < settings.minimumCapacityBytes) return undefined;
  const space = (settings.minimumFreePercent / 100) * sizeBytes;
  if (availableBytes < space) return { of: "space", observed: availableBytes, threshold: space };
  const free = (settings.minimumInodesFreePercent / 100) * inodes;
  return inodesFree < free ? { of: "inodes", observed: inodesFree, threshold: free } : undefined;
}

/**
 * Evicts pods with large writable layers under pressure of their filesystem: reclaimed pods first, then by usage. After
 * katalyst-core plugin/rootfs/rootfs_pressure.go; unlike there, pods with unknown usage are not selected.
 */
export const rootfsPressure: InTreePlugin<RootfsPressureSettings> = {
  name: "rootfs-pressure-eviction-plugin",
  onByDefault: false,
  answers: (context) => new RootfsPressure(context),
};

class RootfsPressure implements InTreeAnswers {
  readonly #context: InTreePluginContext<RootfsPressureSettings>;
  #shortage: RootfsShortage | undefined;

  constructor(context: InTreePluginContext<RootfsPressureSettings>) {
    this.#context = context;
  }

  async thresholdMet(_pods: readonly ObservedPod[], signal: AbortSignal): Promise<ThresholdAnswer> {
    const state = this.#context.missing.valueOf("rootfs", await this.#filesystem(signal));
    this.#shortage = state && rootfsShortage(state, this.#context.settings());
    if (!this.#shortage) return state ? this.#calm(state) : notMet;
    const { of, threshold, observed } = this.#shortage;
    return {
      ...notMet,
      metType: "hard",
      scope: "SystemRootfs",
      thresholdValue: threshold,
      observedValue: observed,
      operator: "lessThan",
      unit: of === "space" ? "bytes" : "inodes",
      condition: { target: "node", name: "SystemRootfs", effects: ["NoSchedule"], met: true },
    };
  }

  async getTopEvictionPods(
    pods: readonly ObservedPod[],
    { topN }: TopQuestion,
    signal: AbortSignal,
  ): Promise<TopAnswer> {
    const { parts, missing } = this.#context;
    const { podMinimumUsedBytes, podMinimumInodes, gracePeriodSeconds } = this.#context.settings();
    if (!this.#shortage) return noTopPods;
    const isOfSpace = this.#shortage.of === "space";
    const disks = missing.valueOf("podDisk", await parts.disks.all(signal));
    if (!disks) return noTopPods;
    const usedBy = ({ pod }: ObservedPod) => usedOf(disks.get(pod.uid), isOfSpace);
    const minimum = isOfSpace ? podMinimumUsedBytes : podMinimumInodes;
    // Evicting a pod that uses nothing there would not help.
    const helpful = pods.filter((pod) => (usedBy(pod) ?? 0) >= Math.max(minimum, 1));
    const ranked = victimOrder(helpful, (pod) => [isReclaimed(pod) ? 1 : 0, usedBy(pod)]);
    return { pods: ranked.slice(0, topN).map(({ pod }) => pod), gracePeriodSeconds };
  }

  // Available space against its threshold, not met.
  #calm({ sizeBytes, availableBytes }: FilesystemState): ThresholdAnswer {
    const { minimumFreePercent, minimumCapacityBytes } = this.#context.settings();
    if (minimumFreePercent === 0 || sizeBytes < minimumCapacityBytes) return notMet;
    const thresholdValue = (minimumFreePercent / 100) * sizeBytes;
    const values = {
      thresholdValue,
      observedValue: availableBytes,
      operator: "lessThan",
      unit: "bytes",
    } as const;
    return { ...notMet, scope: "SystemRootfs", ...values };
  }

  async #filesystem(signal: AbortSignal) {
    const { rootfsPath, readings, clock } = this.#context.parts;
    try {
      return await readings.filesystem(await rootfsPath(signal), signal);
    } catch (error) {
      signal.throwIfAborted();
      return { state: "missing", at: clock.now(), message: messageOf(error) } as const;
    }
  }
}

function usedOf(disk: PodDisk | undefined, isOfSpace: boolean): number | undefined {
  return isOfSpace ? disk?.bytes : disk?.inodes;
}
