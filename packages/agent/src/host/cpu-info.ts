import { identifyArm, identifyX86 } from "./cpu-models.ts";
import type { Probe } from "./probe.ts";

/** Processor model. Values that the machine does not report are absent. */
export interface CpuInfo {
  /** "GenuineIntel", "AuthenticAMD", "ARM", ... */
  vendor?: string;
  /** x86 display family. */
  family?: number;
  /** Generation: "Genoa", "SapphireRapids", "Neoverse-N1". */
  codeName?: string;
  /** Core design: "Zen4", "SapphireRapids", "Neoverse-N1". */
  microarchitecture?: string;
  /** Flags (x86) or features (arm64) common to all CPUs that were read, in the kernel's order. */
  flags: readonly string[];
}

const CPU_INFO = "/proc/cpuinfo";
// Each CPU takes about 2 KB and costs the kernel a query of that CPU, so only the first ones are read.
const CPU_INFO_CAP = 64 * 1024;
const FLAG_KEYS = ["flags", "Features"];

/** Reads the first CPUs of /proc/cpuinfo. Undefined if the file is absent. */
export async function readCpuInfo(probe: Probe): Promise<CpuInfo | undefined> {
  const text = await probe.text(CPU_INFO, { cap: CPU_INFO_CAP, truncate: true });
  return text ? parseCpuInfo(text, text.length >= CPU_INFO_CAP - 1) : undefined;
}

/** Counts the CPUs in /proc/cpuinfo. Expensive on large machines; used only if sysfs does not list CPUs. */
export async function countListedCpus(probe: Probe): Promise<number | undefined> {
  const text = await probe.text(CPU_INFO, { cap: 8 * 1024 * 1024 });
  const count = text?.match(/^processor\s*:/gm)?.length ?? 0;
  return count === 0 ? undefined : count;
}

/** Parses /proc/cpuinfo. @param cutOff whether the text ends within its last block */
export function parseCpuInfo(text: string, cutOff = false): CpuInfo {
  const all = text.split(/\n\s*\n/).map(parseBlock);
  const blocks = cutOff && all.length > 1 ? all.slice(0, -1) : all;
  const first = blocks[0] ?? new Map<string, string>();
  const flags = commonFlags(blocks);

  const implementer = first.get("CPU implementer");
  if (implementer) {
    const arm = identifyArm(Number(implementer), Number(first.get("CPU part")));
    return { ...arm, flags };
  }

  const vendor = first.get("vendor_id");
  const [family, model, stepping] = ["cpu family", "model", "stepping"].map((key) => decimal(first.get(key)));
  return {
    ...optional("vendor", vendor),
    ...optional("family", family),
    ...identifyX86(vendor, family, model, stepping),
    flags,
  };
}

function parseBlock(block: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon < 0) continue;
    const key = line.slice(0, colon).trim();
    if (!fields.has(key)) fields.set(key, line.slice(colon + 1).trim());
  }
  return fields;
}

// On hybrid processors a workload may run on either core type, so only common flags count.
function commonFlags(blocks: readonly Map<string, string>[]): string[] {
  const lists = blocks
    .map((fields) => fields.get(FLAG_KEYS.find((key) => fields.has(key)) ?? ""))
    .filter((list) => list !== undefined)
    .map((list) => list.split(/\s+/).filter(Boolean));
  const [first = [], ...others] = lists;
  const sets = others.map((list) => new Set(list));
  return [...new Set(first)].filter((flag) => sets.every((set) => set.has(flag)));
}

function decimal(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function optional<K extends string, V>(key: K, value: V | undefined): { [key in K]?: V } {
  return value === undefined || value === "" ? {} : ({ [key]: value } as { [key in K]?: V });
}
