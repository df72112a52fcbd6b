import { randomUUID } from "node:crypto";
import type { LifecycleStore } from "../state/index.ts";
import { PodStatusCache } from "./cache.ts";
import type { LifecycleContext } from "./context.ts";
import { EventLog } from "./event-log.ts";
import { Hints } from "./hints.ts";
import { Journal } from "./journal.ts";
import { InspectionLimiter } from "./limiter.ts";
import { RelistPacing } from "./pacing.ts";
import { PodQueue } from "./pod-queue.ts";
import { Progress } from "./progress.ts";
import { PodRecords } from "./records.ts";
import { StartGate } from "./start-gate.ts";

export interface LifecyclePartsOptions {
  /** Persists events and records. If undefined, they are only kept in memory. */
  store?: LifecycleStore;
  newLogId?: () => string;
}

export type LifecycleParts = ReturnType<typeof createLifecycleParts>;

/** Creates the state that `PodTracker` and `Relist` write. Each part writes only to those created before it. */
export function createLifecycleParts(context: LifecycleContext, options: LifecyclePartsOptions) {
  const { clock, settings, metrics } = context;
  const records = new PodRecords();
  const progress = new Progress(context, records);
  const known = new StartGate(context, progress);
  const current = new StartGate(context, progress);
  const listed = new StartGate(context, progress);
  const pacing = new RelistPacing(context);
  const queue = new PodQueue(context, pacing);
  const hints = new Hints(context, pacing, queue);
  const cache = new PodStatusCache(hints);
  const events = new EventLog({
    capacity: settings.logCapacity,
    clock,
    snapshot: () => records.emitted(),
    gate: current,
    newId: options.newLogId ?? (() => randomUUID().replaceAll("-", "").slice(0, 12)),
    onFellOff: () => metrics.fellOff.inc(),
  });
  const journal = new Journal(context, events, options.store);
  const limiter = new InspectionLimiter(context);
  return {
    records,
    progress,
    /**
     * Open once there is a snapshot of the node: restored from an earlier process, or built by a relist. No
     * events are emitted before that, because the snapshot contains the first list. A reading that outlives
     * the first relist emits the changes it finds, because the snapshot does not contain them.
     */
    known,
    /**
     * Open once consumers can get the snapshot, because it is as new as everything that an earlier process
     * emitted: it is proven that no event was lost, or all pods have been read.
     */
    current,
    /** Open once all pods have been read. */
    listed,
    pacing,
    queue,
    hints,
    cache,
    events,
    journal,
    limiter,
  };
}
