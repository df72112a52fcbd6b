import { formatQuantity, quantityOf } from "@nodekeeper/core/lib";
import type { CpuInfo, InterfaceAddresses, NetworkInterface } from "../host/index.ts";
import type { SystemFacts } from "./system-facts.ts";

/** An entry in spec.nodeResourceProperties of a CustomNodeResource. */
export interface Property {
  propertyName: string;
  propertyValues?: string[];
  /** A Kubernetes quantity. */
  propertyQuantity?: string;
}

export interface PropertyOptions {
  /** Whether to report every CPU flag, about 1.5 KB per node. */
  cpuFlags?: boolean;
}

/**
 * Returns the properties of the machine with the names, formats and order of katalyst's system reporter. Unknown
 * properties are omitted; katalyst reports them as empty or -1.
 */
export function systemProperties(facts: SystemFacts, options: PropertyOptions = {}): Property[] {
  const interfaces = facts.interfaces ?? [];
  const flags = facts.cpu?.flags ?? [];
  const codeName = facts.cpu && reportedCodeName(facts.cpu);
  const properties = [
    quantity("numa", facts.numaNodes?.filter((node) => node.cpus.length > 0).length),
    quantity("nbw", highestSpeed(interfaces)),
    quantity("cpu", facts.onlineCpus?.length),
    facts.memoryTotal === undefined
      ? undefined
      : {
          propertyName: "memory",
          propertyQuantity: formatQuantity(quantityOf(facts.memoryTotal, "BinarySI")),
        },
    values("cis", instructionSets(flags)),
    values("cpu_flags", options.cpuFlags && flags.length > 0 ? [flags.join(",")] : []),
    values(
      "topology",
      interfaces.map((each) => JSON.stringify(interfaceInfo(each, facts.addresses?.get(each.name)))),
    ),
    values("cpu_codename", codeName ? [codeName] : []),
    values("is_vm", facts.isVirtual === undefined ? [] : [String(facts.isVirtual)]),
  ];
  return properties.filter((property) => property !== undefined);
}

/**
 * Returns the code name in the format of keys in katalyst's configuration, for example "AMD_K19Zen4" or
 * "Intel_IceLake".
 */
export function reportedCodeName(cpu: CpuInfo): string | undefined {
  if (!cpu.codeName) return undefined;
  if (cpu.vendor === "GenuineIntel") return `Intel_${cpu.codeName}`;
  if (cpu.vendor === "AuthenticAMD") {
    return `AMD_K${(cpu.family ?? 0).toString(16).toUpperCase()}${cpu.microarchitecture}`;
  }
  return `${cpu.vendor}_${cpu.codeName}`;
}

function quantity(propertyName: string, value: number | undefined): Property | undefined {
  return value === undefined
    ? undefined
    : { propertyName, propertyQuantity: formatQuantity(quantityOf(value)) };
}

function values(propertyName: string, propertyValues: string[]): Property | undefined {
  return propertyValues.length === 0 ? undefined : { propertyName, propertyValues };
}

function highestSpeed(interfaces: readonly NetworkInterface[]): number | undefined {
  const speeds = interfaces
    .filter(isEnabled)
    .map((each) => each.speedMbps)
    .filter((speed) => speed !== undefined);
  return speeds.length === 0 ? undefined : Math.max(...speeds);
}

function isEnabled(each: NetworkInterface): boolean {
  return each.operationalState === "up";
}

// Field names and order of katalyst's machine.InterfaceInfo as marshaled by Go. Unknown integers are -1.
function interfaceInfo(
  each: NetworkInterface,
  addresses: InterfaceAddresses | undefined,
): Record<string, unknown> {
  return {
    NSName: "",
    NSInode: 0,
    NSAbsDir: "",
    Name: each.name,
    IfIndex: each.index ?? 0,
    Speed: each.speedMbps ?? -1,
    NumaNode: each.numaNode ?? -1,
    Enable: isEnabled(each),
    Addr: addresses ? { IPV4: addressList(addresses.ipv4), IPV6: addressList(addresses.ipv6) } : null,
    PCIAddr: each.pciAddress ?? "",
  };
}

function addressList(addresses: readonly string[]): readonly string[] | null {
  return addresses.length === 0 ? null : addresses;
}

// Flags in /proc/cpuinfo that name instruction sets. Other flags are reported only as cpu_flags, if enabled.
const x86 =
  /^(?:sse|sse2|ssse3|sse4_1|sse4_2|sse4a|avx|avx2|avx512\w+|avx_\w+|avx10\w*|amx_\w+|fma|f16c|aes|vaes|pclmulqdq|vpclmulqdq|sha_ni|gfni|bmi1|bmi2|adx|popcnt|movbe)$/;
const arm64 =
  /^(?:fp|asimd\w*|sve\w*|sme\w*|aes|pmull|sha1|sha2|sha3|sha512|crc32|atomics|bf16|i8mm|fphp|flagm)$/;

/**
 * Returns the instruction sets among a processor's flags, sorted. If "avx512f" is present, "avx512" is added, because
 * schedulers that read katalyst's `cis` expect this name.
 */
function instructionSets(flags: readonly string[]): string[] {
  const rule = flags.includes("asimd") ? arm64 : x86;
  const found = flags.map((flag) => flag.toLowerCase()).filter((flag) => rule.test(flag));
  if (found.includes("avx512f")) found.push("avx512");
  return [...new Set(found)].sort();
}
