import {
  DeviceDriverDefinition,
  type DeviceDriverServiceImplementation,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import {
  type AllocatedDevice,
  DeviceBindingDefinition,
  type DeviceBindingServiceImplementation,
  DeviceHealthReportDefinition,
  type DeviceHealthReportServiceImplementation,
  DevicePreparationDefinition,
  type DevicePreparationServiceImplementation,
  DeviceStatusReportDefinition,
  type DeviceStatusReportServiceImplementation,
  DriverFeedbackDefinition,
  type DriverFeedbackServiceImplementation,
  PrepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import {
  type PluginInfo,
  RegistrationDefinition,
  type RegistrationServiceImplementation,
} from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { createServer, type Server } from "nice-grpc";

export const CONTRACT = "nodekeeper.devices.v1alpha2";

/** Parts of a driver that keeps the contract. Tests replace those that break a rule. */
export interface DriverParts {
  info: PluginInfo;
  notify: RegistrationServiceImplementation["notifyRegistrationStatus"];
  devices: DeviceDriverServiceImplementation["listAndWatchDevices"];
  health: DeviceHealthReportServiceImplementation["watchDeviceHealth"];
  status: DeviceStatusReportServiceImplementation["watchDeviceStatus"] | undefined;
  allocations: DeviceBindingServiceImplementation["reportAllocations"];
  feedback: DriverFeedbackServiceImplementation["reportProblems"];
  /** Undefined: DevicePreparation is not served. */
  prepare: DevicePreparationServiceImplementation["prepareDevices"] | undefined;
  unprepare: DevicePreparationServiceImplementation["unprepareDevices"];
  restore: DevicePreparationServiceImplementation["restoreClaims"];
  decodePrepare: (bytes: Uint8Array) => PrepareDevicesRequest;
}

export const services = [
  DevicePreparationDefinition,
  DeviceHealthReportDefinition,
  DeviceStatusReportDefinition,
  DeviceBindingDefinition,
  DriverFeedbackDefinition,
].map(({ name }) => `${CONTRACT}.${name}`);

/** Devices in the form of a response. */
export const poolOf = (...names: string[]) => ({ pools: [{ devices: names.map((name) => ({ name })) }] });

/** What a container gets of a device. */
export const preparedDevice = ({ request, pool, device, shareId }: AllocatedDevice, ...env: string[]) => ({
  request,
  pool,
  device,
  shareId,
  edits: { env: [`DEVICE=${device}`, ...env] },
});

/** Never resolves, and never ends before the call does. */
export function untilCancelled(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

function goodParts(): DriverParts {
  return {
    info: {
      type: "DRAPlugin",
      name: "gpu.example.com",
      endpoint: "",
      supportedVersions: [CONTRACT, ...services],
    },
    notify: async () => ({}),
    async *devices(_, { signal }) {
      yield poolOf("gpu-0", "gpu-1");
      await untilCancelled(signal);
    },
    async *health(_, { signal }) {
      yield { devices: [{ device: "gpu-0", healthy: true }] };
      await untilCancelled(signal);
    },
    async *status(_, { signal }) {
      yield {};
      await untilCancelled(signal);
    },
    allocations: async () => ({}),
    feedback: async () => ({}),
    prepare: async ({ devices }) => ({ devices: devices.map((device) => preparedDevice(device)) }),
    unprepare: async () => ({}),
    restore: async () => ({}),
    decodePrepare: (bytes) => PrepareDevicesRequest.decode(bytes),
  };
}

/** Serves a driver on a unix socket. The driver keeps the contract, except for the given parts. */
export async function serveTestDriver(path: string, changed: Partial<DriverParts>): Promise<Server> {
  const parts = { ...goodParts(), ...changed };
  const server = createServer();
  server.add(RegistrationDefinition, {
    getInfo: async () => parts.info,
    notifyRegistrationStatus: parts.notify,
  });
  server.add(DeviceDriverDefinition, { listAndWatchDevices: parts.devices });
  server.add(DeviceHealthReportDefinition, { watchDeviceHealth: parts.health });
  if (parts.status) server.add(DeviceStatusReportDefinition, { watchDeviceStatus: parts.status });
  server.add(DeviceBindingDefinition, { reportAllocations: parts.allocations });
  server.add(DriverFeedbackDefinition, { reportProblems: parts.feedback });
  const { prepareDevices, ...methods } = DevicePreparationDefinition.methods;
  const { prepare, unprepare, restore } = parts;
  if (prepare)
    server.add(
      {
        ...DevicePreparationDefinition,
        methods: {
          prepareDevices: {
            ...prepareDevices,
            requestType: { ...PrepareDevicesRequest, decode: parts.decodePrepare },
          },
          ...methods,
        },
      } as unknown as typeof DevicePreparationDefinition,
      { prepareDevices: prepare, unprepareDevices: unprepare, restoreClaims: restore },
    );
  await server.listen(`unix:${path}`);
  return server;
}
