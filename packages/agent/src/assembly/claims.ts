import { messageOf, readBootTime, withDeadline } from "@nodekeeper/core/lib";
import {
  ClaimManager,
  ClaimProblems,
  type ClaimProblemsOptions,
  ClaimRecords,
  type ClaimSources,
  ClaimStatusApi,
  ClaimStatuses,
  DriverStates,
  type DriverStatesOptions,
} from "../claims/index.ts";
import type { DeviceSync } from "../devices/index.ts";
import { devicesInUse } from "../intree/index.ts";
import type { PluginHandler } from "../plugins/index.ts";
import { ClaimStatusStore, ClaimStore } from "../state/index.ts";
import type { AgentContext } from "./context.ts";

const KUBELET_TIMEOUT_MS = 10_000;

/** Dependencies of preparing claims that other parts provide. */
interface ClaimParts extends Pick<ClaimSources, "pods"> {
  reportedDevice: DeviceSync["reportedDevice"];
  devices: DriverStatesOptions["devices"] & ClaimProblemsOptions["drivers"];
}

/** The kubelet's DRA plugin on behalf of drivers; undefined if `devices.kubeletPlugin.enabled` is false. */
export function claimsOf(
  context: AgentContext,
  { devices, pods, reportedDevice }: ClaimParts,
): ClaimManager | undefined {
  const { configuration, client, clock, database, log } = context;
  const { nodeName, hostRoot, devices: settings } = configuration();
  if (!settings.kubeletPlugin.enabled) return undefined;
  const common = { clock, log: log.child({ logger: "claims" }), settings: () => configuration().devices };
  const records = new ClaimRecords(
    new ClaimStore(database),
    readBootTime()?.id ?? "unknown",
    clock,
    database.isProven,
  );
  const problems = new ClaimProblems({ records, drivers: devices });
  const statuses = new ClaimStatuses({
    ...common,
    problems,
    nodeName,
    records,
    store: new ClaimStatusStore(database),
    api: new ClaimStatusApi(client),
    queueMetrics: context.queueMetrics,
  });
  const sources: ClaimSources = {
    ...common,
    client,
    statuses,
    problems,
    records,
    drivers: new DriverStates({ ...common, nodeName, devices, records, statuses, problems }),
    reportedDevice: settings.kubeletPlugin.metadata ? reportedDevice : undefined,
    hostRoot,
    pods,
  };
  return new ClaimManager(sources, {
    ...context,
    devicesInUse: (signal) =>
      withDeadline(clock, { ms: KUBELET_TIMEOUT_MS, name: "the kubelet's PodResources" }, signal, (scope) =>
        devicesInUse(configuration().reporting.kubelet.podResourcesSocket, scope),
      ),
  });
}

/** Registers drivers with the publisher of their devices, and with the claim manager unless it is disabled. */
export function driverHandler(
  devices: DeviceSync["handler"],
  claims: ClaimManager | undefined,
): PluginHandler {
  if (!claims) return devices;
  return {
    type: devices.type,
    validate: (candidate) => devices.validate(candidate),
    async register(registration, signal) {
      await claims.register(registration);
      try {
        await devices.register(registration, signal, claims.preparationOf(registration.name));
      } catch (error) {
        claims.deregister(registration, messageOf(error));
        throw error;
      }
    },
    deregister(registration, reason) {
      devices.deregister(registration, reason);
      claims.deregister(registration, reason);
    },
    holdMs: (name) => (claims.hasClaims(name) ? Number.POSITIVE_INFINITY : devices.holdMs()),
    forget: (name, reason) => devices.forget(name, reason),
  };
}
