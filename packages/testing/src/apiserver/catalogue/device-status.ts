import { BlockList, isIP } from "node:net";
import type { KubeObject } from "@nodekeeper/core/kube";
import { at, isTree, type Tree } from "../json.ts";
import { type Problem, refuse, treesAt } from "./object-rules.ts";

const subject = { group: "resource.k8s.io", plural: "resourceclaims", kind: "ResourceClaim" };
const conditionStatuses: readonly unknown[] = ["True", "False", "Unknown"];

/** Throws a 422 if `status.devices` of a ResourceClaim breaks a rule of kube-apiserver. */
export function validateDeviceStatus(claim: KubeObject): void {
  refuse({ ...subject, name: claim.metadata.name ?? "" }, statusProblems(claim));
}

function* statusProblems(claim: KubeObject): Generator<Problem> {
  const results = treesAt(claim, "status", "allocation", "devices", "results");
  const allocated = new Set(results.map(keyOf));
  for (const [index, entry] of treesAt(claim, "status", "devices").entries()) {
    const field = `status.devices[${index}]`;
    if (!allocated.has(keyOf(entry)))
      yield [field, "Invalid value: must be an allocated device in the claim"];
    const problems = [...conditionProblems(entry), ...dataProblems(entry), ...networkProblems(entry)];
    for (const [name, why] of problems) yield [`${field}.${name}`, why];
  }
}

type Problems = Problem[];

function conditionProblems(entry: Tree): Problems {
  const conditions = treesAt(entry, "conditions");
  const problems: Problems =
    conditions.length > 8 ? [["conditions", "Too many: must have at most 8 items"]] : [];
  const types = new Set<unknown>();
  for (const [index, { type, status, reason, lastTransitionTime, message }] of conditions.entries()) {
    const field = `conditions[${index}]`;
    if (types.has(type)) problems.push([field, "Duplicate value"]);
    types.add(type);
    if (!type) problems.push([`${field}.type`, "Required value"]);
    if (!conditionStatuses.includes(status)) problems.push([`${field}.status`, "Unsupported value"]);
    if (!lastTransitionTime) problems.push([`${field}.lastTransitionTime`, "Required value"]);
    if (!/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(String(reason ?? "")))
      problems.push([`${field}.reason`, "Invalid value"]);
    if (size(message) > 32_768) problems.push([`${field}.message`, "Too long"]);
  }
  return problems;
}

function dataProblems({ data }: Tree): Problems {
  if (data === undefined) return [];
  if (!isTree(data)) return [["data", "Invalid value: must be a valid JSON object"]];
  return size(JSON.stringify(data)) > 10_240 ? [["data", "Too long: may not be more than 10240 bytes"]] : [];
}

function networkProblems(entry: Tree): Problems {
  const ips = at(entry, "networkData", "ips");
  const addresses = Array.isArray(ips) ? ips.map(String) : [];
  const problems: Problems = [];
  if (size(at(entry, "networkData", "interfaceName")) > 256)
    problems.push(["networkData.interfaceName", "Too long"]);
  if (size(at(entry, "networkData", "hardwareAddress")) > 128)
    problems.push(["networkData.hardwareAddress", "Too long"]);
  if (addresses.length > 16) problems.push(["networkData.ips", "Too many: must have at most 16 items"]);
  for (const [index, address] of addresses.entries()) {
    if (addresses.indexOf(address) !== index) problems.push([`networkData.ips[${index}]`, "Duplicate value"]);
    if (!isInterfaceAddress(address)) problems.push([`networkData.ips[${index}]`, "Invalid value"]);
  }
  return problems;
}

function isInterfaceAddress(text: string): boolean {
  const [address = "", length = "", ...rest] = text.split("/");
  const family = isIP(address);
  if (family === 0 || rest.length > 0 || !/^\d+$/.test(length) || address !== address.toLowerCase())
    return false;
  try {
    new BlockList().addSubnet(address, Number(length), family === 4 ? "ipv4" : "ipv6");
    return true;
  } catch {
    return false;
  }
}

function keyOf({ driver, pool, device, shareID }: Tree): string {
  return JSON.stringify([driver, pool, device, shareID ?? ""]);
}

function size(text: unknown): number {
  return typeof text === "string" ? Buffer.byteLength(text) : 0;
}
