import { type InTreeReporterName, inTreeReporterNames } from "@nodekeeper/api/settings";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { DeviceSync } from "../devices/index.ts";
import { Host } from "../host/index.ts";
import {
  createKubeletReporterMetrics,
  enabledPlugins,
  KUBELET_REPORTER_NAME,
  KubeletReporter,
  podUidLookup,
  type RunningPods,
  SYSTEM_REPORTER_NAME,
  SystemReporter,
} from "../intree/index.ts";
import type { PodLifecycleEventGenerator } from "../lifecycle/index.ts";
import type { ReporterSource } from "../reporting/index.ts";
import type { AgentContext } from "./context.ts";

/** Builds the enabled in-tree reporters. Throws `invalid` for an unknown name. */
export function inTreeReporters(
  { configuration, clock, log, registry }: Pick<AgentContext, "configuration" | "clock" | "log" | "registry">,
  lifecycle: PodLifecycleEventGenerator | undefined,
  devices: Pick<DeviceSync, "reportedDevice" | "onDevicesKnown">,
): ReporterSource[] {
  const { hostRoot, reporting } = configuration();
  const host = new Host({ root: hostRoot, clock });
  const makers: Record<InTreeReporterName, () => ReporterSource> = {
    [SYSTEM_REPORTER_NAME]: () =>
      new SystemReporter({
        host,
        clock,
        log: log.child({ plugin: SYSTEM_REPORTER_NAME }),
        reportCpuFlags: reporting.system.reportCPUFlags,
      }),
    [KUBELET_REPORTER_NAME]: () =>
      new KubeletReporter({
        settings: reporting.kubelet,
        host,
        clock,
        log: log.child({ plugin: KUBELET_REPORTER_NAME }),
        metrics: createKubeletReporterMetrics(registry),
        pods: runningPods(lifecycle),
        devices: {
          attributesOf: (driver, pool, device) => devices.reportedDevice(driver, pool, device)?.attributes,
          onKnown: (callback) => devices.onDevicesKnown(callback),
        },
      }),
  };
  return enabledPlugins(inTreeReporterNames, reporting.inTreePlugins).map((name) => makers[name]());
}

function runningPods(lifecycle: PodLifecycleEventGenerator | undefined): RunningPods {
  if (!lifecycle) {
    // Allocations can't be assigned to pods, and zones without them would report that everything is free.
    const problem = new NodekeeperError(
      "unavailable",
      "lifecycle.enabled is false, and the UIDs of pods come from lifecycle",
    );
    return { listed: () => Promise.reject(problem), uids: () => podUidLookup([]), changes: nothing };
  }
  return {
    listed: (signal) => lifecycle.listed(signal),
    uids: () => podUidLookup(lifecycle.events.snapshot()),
    changes: (signal) => lifecycle.events.read({ after: lifecycle.events.position }, signal),
  };
}

async function* nothing(): AsyncGenerator<never> {}
