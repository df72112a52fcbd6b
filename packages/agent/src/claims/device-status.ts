import type {
  Condition,
  DeviceStatus,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { isRecord } from "@nodekeeper/core/kube";
import { isLabelName, messageOf, parseExactly, quote, rawNumber } from "@nodekeeper/core/lib";
import { canonicalInterfaceAddress } from "./interface-address.ts";

/**
 * The status of one allocated device: an item of `ResourceClaim.status.devices`. It has the same format in
 * resource.k8s.io v1, v1beta2 and v1beta1. Conditions lack `lastTransitionTime`.
 */
export interface StatusEntry {
  driver: string;
  pool: string;
  device: string;
  shareID?: string;
  conditions?: StatusCondition[];
  data?: Record<string, unknown>;
  networkData?: { interfaceName?: string; ips?: string[]; hardwareAddress?: string };
}

/** A metav1.Condition, except for its time. */
export interface StatusCondition {
  type: string;
  status: string;
  reason: string;
  message: string;
  observedGeneration?: unknown;
}

// Limits of resource.k8s.io and metav1.Condition; lengths are in bytes.
const MOST_CONDITIONS = 8;
const LONGEST_REASON = 1_024;
const LONGEST_MESSAGE = 32 * 1_024;
const LONGEST_DATA = 10 * 1_024;
const LONGEST_INTERFACE_NAME = 256;
const LONGEST_HARDWARE_ADDRESS = 128;
const MOST_IPS = 16;
// Writing and comparing JSON is recursive. The API server's own limit is far above.
const DEEPEST_DATA = 64;

const reasonPattern = /^[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;
const statuses: readonly string[] = ["True", "False", "Unknown"];

/** Throws with the field. */
function refuse(field: string, problem: string): never {
  throw new Error(`${field}: ${problem}`);
}

/**
 * Returns the entry for a device's reported status. Throws an Error whose message states the field and the problem.
 * Does not check whether the device is allocated.
 */
export function statusEntry(driver: string, reported: DeviceStatus): StatusEntry {
  const { pool, device, shareId, data, networkData } = reported;
  const conditions = conditionsOf(reported.conditions);
  const network = networkOf(networkData);
  return {
    driver,
    pool,
    device,
    ...(shareId === "" ? {} : { shareID: shareId }),
    ...(conditions.length === 0 ? {} : { conditions }),
    ...(data === "" ? {} : { data: dataOf(data) }),
    ...(Object.keys(network).length === 0 ? {} : { networkData: network }),
  };
}

function conditionsOf(conditions: readonly Condition[]): StatusCondition[] {
  if (conditions.length > MOST_CONDITIONS)
    refuse("conditions", `${conditions.length} are reported, at most ${MOST_CONDITIONS} are allowed`);
  const types = new Set<string>();
  return conditions.map((condition, index) => {
    const field = `conditions[${index}]`;
    const { type, status, reason, message, observedGeneration } = condition;
    if (!isLabelName(type)) refuse(`${field}.type`, `${quote(type)} is not a label name`);
    if (types.has(type)) refuse(`${field}.type`, `${quote(type)} is duplicated`);
    types.add(type);
    if (!statuses.includes(status))
      refuse(`${field}.status`, `${quote(status)} is not "True", "False" or "Unknown"`);
    if (reason === "") refuse(`${field}.reason`, "is required");
    if (!reasonPattern.test(reason)) refuse(`${field}.reason`, `${quote(reason)} is not a CamelCase word`);
    checkLength(`${field}.reason`, reason, LONGEST_REASON);
    checkLength(`${field}.message`, message, LONGEST_MESSAGE);
    if (observedGeneration < 0n) refuse(`${field}.observedGeneration`, "is negative");
    const generation =
      observedGeneration === 0n ? {} : { observedGeneration: rawNumber(String(observedGeneration)) };
    return { type, status, reason, message, ...generation };
  });
}

function dataOf(text: string): Record<string, unknown> {
  checkLength("data", text, LONGEST_DATA);
  let data: unknown;
  try {
    data = parseExactly(text);
  } catch (error) {
    return refuse("data", `is not JSON: ${messageOf(error)}`);
  }
  if (!isRecord(data)) return refuse("data", "is not a JSON object");
  if (isDeeper(data, DEEPEST_DATA)) refuse("data", `is nested more than ${DEEPEST_DATA} levels deep`);
  return data;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1));
}

function networkOf(networkData: DeviceStatus["networkData"]): NonNullable<StatusEntry["networkData"]> {
  const { interfaceName = "", ips = [], hardwareAddress = "" } = networkData ?? {};
  checkLength("networkData.interfaceName", interfaceName, LONGEST_INTERFACE_NAME);
  checkLength("networkData.hardwareAddress", hardwareAddress, LONGEST_HARDWARE_ADDRESS);
  if (ips.length > MOST_IPS)
    refuse("networkData.ips", `${ips.length} are reported, at most ${MOST_IPS} are allowed`);
  for (const [index, ip] of ips.entries()) {
    const field = `networkData.ips[${index}]`;
    const canonical = canonicalInterfaceAddress(ip);
    if (canonical === undefined)
      refuse(field, `${quote(ip)} is not an address in CIDR notation, such as "192.0.2.5/24"`);
    if (canonical !== ip) refuse(field, `${quote(ip)} is not in the canonical form ${quote(canonical)}`);
    if (ips.indexOf(ip) !== index) refuse(field, `${quote(ip)} is duplicated`);
  }
  return {
    ...(interfaceName === "" ? {} : { interfaceName }),
    ...(ips.length === 0 ? {} : { ips }),
    ...(hardwareAddress === "" ? {} : { hardwareAddress }),
  };
}

function checkLength(field: string, text: string, most: number): void {
  const bytes = Buffer.byteLength(text);
  if (bytes > most) refuse(field, `has ${bytes} bytes, at most ${most} are allowed`);
}
