import type {
  PrepareDevicesRequest,
  PrepareDevicesResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { messageOf } from "@nodekeeper/core/lib";
import { HostFiles, preparedOf } from "../claims/index.ts";
import { RuleBroken } from "./finding.ts";

// As in the agent's default configuration.
const host = new HostFiles({ root: "/", allowed: ["/"] });

/** Throws `RuleBroken` unless the agent would accept the answer for this claim. */
export async function checkAnswer(
  driver: string,
  { claim, devices }: PrepareDevicesRequest,
  answer: PrepareDevicesResponse,
): Promise<void> {
  const { uid = "", name = "", namespace = "" } = claim ?? {};
  const owner = { driver, uid, name, namespace, boot: "boot", pods: [], driverUid: 0 };
  try {
    await preparedOf(owner, devices, answer, host.forDriverOf(undefined));
  } catch (error) {
    throw new RuleBroken(messageOf(error));
  }
}

/** Returns why two answers for one claim differ; undefined if they are equal. The order of devices does not matter. */
export function differenceOf(a: PrepareDevicesResponse, b: PrepareDevicesResponse): string | undefined {
  const [one, other] = [a, b].map(({ devices, ...rest }) => ({
    ...rest,
    devices: devices.map(textOf).sort(),
  }));
  const at = one!.devices.findIndex((text, index) => text !== other!.devices[index]);
  if (at >= 0 || one!.devices.length !== other!.devices.length)
    return `${one!.devices[at] ?? "no device"} before, then ${other!.devices[at] ?? "no device"}`;
  return textOf(one) === textOf(other) ? undefined : "the edits of the claim differ";
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, each) => {
    if (typeof each === "bigint") return `${each}`;
    // The entries of a map come in any order.
    const isObject = typeof each === "object" && each !== null && !Array.isArray(each);
    return isObject ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1))) : each;
  });
}
