import { DriverAnswerRefused } from "@nodekeeper/api/errors";
import { counted } from "@nodekeeper/api/wording";
import {
  type ClaimToBind,
  type DeepPartial,
  DeviceBindingDefinition,
  DeviceHealthReportDefinition,
  type DeviceStatus,
  DeviceStatusReportDefinition,
  DriverFeedbackDefinition,
  type PrepareDevicesRequest,
  ReportAllocationsRequest,
  ReportProblemsRequest,
  WatchDeviceHealthRequest,
  WatchDeviceHealthResponse,
  WatchDeviceStatusRequest,
  WatchDeviceStatusResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { isRecord } from "@nodekeeper/core/kube";
import { messageOf, quote } from "@nodekeeper/core/lib";
import { statusEntry } from "../../claims/index.ts";
import type { Bench } from "../bench.ts";
import type { Check } from "../check.ts";
import { claimOf } from "../claims.ts";
import { RuleBroken } from "../finding.ts";
import { claimOfOne } from "./preparation.ts";
import { callOnce } from "./registration.ts";
import { checkSame, FIRST_MESSAGE_MS } from "./same-state.ts";

const LONGEST_MESSAGE = 1_024;

export const reportChecks: readonly Check[] = [
  {
    rule: "health",
    needs: ["first-message"],
    async run(bench) {
      const open = () =>
        bench.watch({
          method: `${bench.service(DeviceHealthReportDefinition)}/WatchDeviceHealth`,
          request: WatchDeviceHealthRequest.encode({}).finish(),
          read: (bytes) => WatchDeviceHealthResponse.decode(bytes).devices,
        });
      using watch = open();
      const { value } = await watch.after(0, FIRST_MESSAGE_MS);
      const known = await deviceNames(bench);
      const seen = new Set<string>();
      for (const { pool, device, message, taintEffect } of value) {
        const name = `${pool || bench.options.nodeName}/${device}`;
        if (!known.has(name)) throw new RuleBroken(`${quote(name)} is not a streamed device`);
        if (seen.has(name)) throw new RuleBroken(`${name} is duplicated`);
        seen.add(name);
        if (message.length > LONGEST_MESSAGE)
          throw new RuleBroken(`${name}: a message of ${message.length} characters`);
        if (!["", "NoSchedule", "NoExecute"].includes(taintEffect))
          throw new RuleBroken(`${name}: ${quote(taintEffect)} is not an effect of a taint`);
      }
      // Whether a device is healthy may change at any time.
      await checkSame(
        bench,
        watch,
        open,
        (devices) => new Map(devices.map(({ pool, device }) => [`device ${pool}/${device}`, ""])),
      );
      return counted(value.length, "device");
    },
  },
  {
    rule: "feedback",
    needs: ["get-info", "versions"],
    async run(bench) {
      const method = `${bench.service(DriverFeedbackDefinition)}/ReportProblems`;
      bench.checkIsOwn();
      const problem = {
        errorId: DriverAnswerRefused.id,
        message: "reported by nodekeeper conformance",
        device: "none",
      };
      for (const problems of [[problem], []]) {
        const message = ReportProblemsRequest.fromPartial({ problems });
        await callOnce(bench, method, ReportProblemsRequest.encode(message).finish());
      }
      return undefined;
    },
  },
  {
    rule: "allocations",
    needs: ["get-info", "versions", "valid-devices"],
    async run(bench) {
      const method = `${bench.service(DeviceBindingDefinition)}/ReportAllocations`;
      bench.checkIsOwn();
      // As for a claim that is deallocated before it is prepared.
      const waiting = bench.options.prepares ? claimsToBind(bench) : [];
      for (const claims of [waiting, []]) {
        const message = ReportAllocationsRequest.fromPartial({ claims });
        await callOnce(bench, method, ReportAllocationsRequest.encode(message).finish());
      }
      return counted(waiting.length, "claim");
    },
  },
];

function claimsToBind(bench: Bench): DeepPartial<ClaimToBind>[] {
  const device = bench.streamed(0).find(({ device }) => device.bindingConditions?.length);
  return device ? [{ ...claimOf([bench.allocated(device)]), allocatedAt: BigInt(bench.clock.now()) }] : [];
}

/** With a prepared claim, if the driver prepares devices. */
export const statusCheck: Check = {
  rule: "status",
  needs: ["get-info", "versions"],
  async run(bench) {
    const method = `${bench.service(DeviceStatusReportDefinition)}/WatchDeviceStatus`;
    const claim = bench.canPrepare ? claimOfOne(bench) : undefined;
    if (claim) await bench.preparation.prepare(claim);
    using watch = bench.watch({
      method,
      request: WatchDeviceStatusRequest.encode({}).finish(),
      read: (bytes) => WatchDeviceStatusResponse.decode(bytes).devices,
    });
    const { value } = await watch.after(0, FIRST_MESSAGE_MS);
    if (claim) await bench.preparation.unprepare(claim);
    for (const status of value) {
      const problem = problemOf(bench.known.name, status, claim);
      if (problem !== undefined)
        throw new RuleBroken(`claim ${status.claimUid}, device ${status.pool}/${status.device}: ${problem}`);
    }
    return counted(value.length, "device");
  },
};

// Returns the names of all devices in the first and the latest message, as "<pool>/<device>". Includes quarantined
// devices, because another rule checks whether devices are valid.
async function deviceNames({ devices, pools }: Bench): Promise<Set<string>> {
  const latest = devices ? (await devices.after(0, 0)).value : pools;
  const checked = [...(pools?.pools ?? []), ...(latest?.pools ?? [])];
  const problems = [...(pools?.problems ?? []), ...(latest?.problems ?? [])];
  return new Set([
    ...checked.flatMap(({ name, devices }) => devices.map((device) => `${name}/${device.name}`)),
    ...problems.map(({ pool, device }) => `${pool}/${device}`),
  ]);
}

// Returns why a status is invalid, by the rules of the agent. Undefined if it is valid.
function problemOf(
  driver: string,
  status: DeviceStatus,
  known: PrepareDevicesRequest | undefined,
): string | undefined {
  const { claimUid, pool, device } = status;
  const isOfClaim = known?.devices.some((each) => each.pool === pool && each.device === device);
  if (claimUid === known?.claim?.uid && !isOfClaim) return "the claim does not have the device";
  try {
    statusEntry(driver, status);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Returns whether a text is a JSON object. */
export function isJsonObject(text: string): boolean {
  try {
    return isRecord(JSON.parse(text));
  } catch {
    return false;
  }
}
