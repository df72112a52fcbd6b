import { DeviceDriverDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import {
  DeviceBindingDefinition,
  DeviceHealthReportDefinition,
  DevicePreparationDefinition,
  DeviceStatusReportDefinition,
  DriverFeedbackDefinition,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { UnaryChannel } from "@nodekeeper/core/grpc";
import { codeOf, quote, withDeadline } from "@nodekeeper/core/lib";
import { contractOf, isDriverName } from "../../devices/index.ts";
import { checkPluginInfo } from "../../plugins/index.ts";
import type { Bench } from "../bench.ts";
import type { Check } from "../check.ts";
import { malformedRequest } from "../claims.ts";
import { RuleBroken } from "../finding.ts";

const optional = [
  DevicePreparationDefinition,
  DeviceHealthReportDefinition,
  DeviceStatusReportDefinition,
  DeviceBindingDefinition,
  DriverFeedbackDefinition,
];
const streams: Readonly<Record<string, string>> = {
  [DeviceDriverDefinition.name]: "ListAndWatchDevices",
  [DeviceHealthReportDefinition.name]: "WatchDeviceHealth",
  [DeviceStatusReportDefinition.name]: "WatchDeviceStatus",
};
// Methods that pass a driver the complete list of its allocations or problems.
const notices: Readonly<Record<string, string>> = {
  [DeviceBindingDefinition.name]: "ReportAllocations",
  [DriverFeedbackDefinition.name]: "ReportProblems",
};
const FAMILY = "nodekeeper.devices.";
// Long enough for an answer that a method is not implemented.
const ANSWER_MS = 10_000;

export const registrationChecks: readonly Check[] = [
  {
    rule: "get-info",
    needs: [],
    async run(bench) {
      const info = await bench.getInfo();
      if (info.type !== "DRAPlugin") throw new RuleBroken(`the type is ${quote(info.type)}`);
      if (info.supportedVersions.length === 0) throw new RuleBroken("there are no supported versions");
      // The name has a rule of its own.
      checkPluginInfo({ ...info, name: "name" }, bench.socket);
      bench.info = info;
      return `${info.name}: ${info.supportedVersions.join(", ")}`;
    },
  },
  {
    rule: "driver-name",
    needs: ["get-info"],
    async run({ known: { name } }) {
      if (!isDriverName(name)) throw new RuleBroken(`${quote(name)} is not a DNS subdomain`);
      return undefined;
    },
  },
  {
    rule: "versions",
    needs: ["get-info"],
    async run({ known: { supportedVersions } }) {
      if (!contractOf(supportedVersions))
        throw new RuleBroken(`${supportedVersions.join(", ")}: no ${FAMILY}v1alpha2`);
      const unknown = supportedVersions.find((version) => version.startsWith(FAMILY) && !partsOf(version));
      if (unknown !== undefined) throw new RuleBroken(`${quote(unknown)} is not a service of the contract`);
      return undefined;
    },
  },
  {
    rule: "versions-served",
    needs: ["versions"],
    async run(bench) {
      await Promise.all(
        bench.known.supportedVersions.map(async (version) => {
          const parts = partsOf(version);
          if (parts && !(await isServed(bench, parts))) bench.unserved.add(version);
        }),
      );
      if (bench.unserved.size > 0) throw new RuleBroken(`not served: ${[...bench.unserved].join(", ")}`);
      return undefined;
    },
  },
  {
    rule: "notify",
    needs: ["get-info"],
    async run(bench) {
      await bench.notify();
      return undefined;
    },
  },
];

interface Service {
  contract: string;
  name: string;
}

// Splits a supported version into package and service. A package alone means DeviceDriver, the stream of devices.
// Returns undefined if it is not a service of the contract.
function partsOf(version: string): Service | undefined {
  const contract = contractOf([version, version.slice(0, version.lastIndexOf("."))]);
  if (contract === undefined) return undefined;
  if (version === contract) return { contract, name: DeviceDriverDefinition.name };
  const name = version.slice(contract.length + 1);
  return optional.some((each) => each.name === name) ? { contract, name } : undefined;
}

// Returns whether the driver implements the service. Other rules check its behavior.
async function isServed(bench: Bench, { contract, name }: Service): Promise<boolean> {
  const service = `${contract}.${name}`;
  const stream = streams[name];
  try {
    if (stream) {
      using watch = bench.watch({
        method: `${service}/${stream}`,
        request: new Uint8Array(),
        read: () => true,
      });
      await watch.after(0, ANSWER_MS);
    } else {
      // A malformed request is rejected before the driver's handler runs, so the call has no side effects.
      await callOnce(bench, `${service}/${notices[name] ?? "UnprepareDevices"}`, malformedRequest);
    }
    return true;
  } catch (error) {
    return codeOf(error) !== "unsupported";
  }
}

/** Calls a method of the driver. */
export async function callOnce(bench: Bench, method: string, request: Uint8Array): Promise<void> {
  const channel = new UnaryChannel(bench.endpoint, { maxReceiveBytes: 1024 * 1024 });
  try {
    await withDeadline(bench.clock, { ms: ANSWER_MS, name: method }, bench.signal, (signal) =>
      channel.call(method, [request], signal),
    );
  } finally {
    channel.close();
  }
}
