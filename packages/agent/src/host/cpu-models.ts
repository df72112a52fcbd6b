/** Code names of a processor generation and of its core design. */
export interface CpuModelNames {
  vendor?: string;
  codeName?: string;
  microarchitecture?: string;
}

interface X86Row {
  family: number;
  /** Range of display models, inclusive. */
  models: readonly [number, number];
  steppings?: readonly [number, number];
  codeName: string;
  /** Default: the code name. */
  microarchitecture?: string;
}

// Display families and models from the vendors' manuals and the kernel's asm/intel-family.h.
const intelRows: readonly X86Row[] = [
  ...intel("SandyBridge", 0x2a, 0x2d),
  ...intel("IvyBridge", 0x3a, 0x3e),
  ...intel("Haswell", 0x3c, 0x3f, 0x45, 0x46),
  ...intel("Broadwell", 0x3d, 0x47, 0x4f, 0x56),
  ...intel("SkyLake", 0x4e, 0x5e),
  { family: 6, models: [0x55, 0x55], steppings: [0, 4], codeName: "SkyLake" },
  { family: 6, models: [0x55, 0x55], steppings: [5, 7], codeName: "CascadeLake" },
  { family: 6, models: [0x55, 0x55], steppings: [10, 11], codeName: "CooperLake" },
  ...intel("KabyLake", 0x8e, 0x9e),
  ...intel("CometLake", 0xa5, 0xa6),
  ...intel("IceLake", 0x6a, 0x6c, 0x7d, 0x7e),
  ...intel("TigerLake", 0x8c, 0x8d),
  ...intel("AlderLake", 0x97, 0x9a),
  ...intel("RaptorLake", 0xb7, 0xba, 0xbf),
  ...intel("MeteorLake", 0xaa, 0xac),
  ...intel("ArrowLake", 0xb5, 0xc5, 0xc6),
  ...intel("LunarLake", 0xbd),
  ...intel("SapphireRapids", 0x8f),
  ...intel("EmeraldRapids", 0xcf),
  ...intel("GraniteRapids", 0xad, 0xae),
  ...intel("SierraForest", 0xaf),
  ...intel("ClearwaterForest", 0xdd),
];

const amdRows: readonly X86Row[] = [
  amd(0x17, [0x00, 0x07], "Naples", "Zen"),
  amd(0x17, [0x08, 0x0f], "PinnacleRidge", "Zen+"),
  amd(0x17, [0x10, 0x17], "RavenRidge", "Zen"),
  amd(0x17, [0x18, 0x1f], "Picasso", "Zen+"),
  amd(0x17, [0x30, 0x3f], "Rome", "Zen2"),
  amd(0x17, [0x60, 0x6f], "Renoir", "Zen2"),
  amd(0x17, [0x70, 0x7f], "Matisse", "Zen2"),
  amd(0x17, [0xa0, 0xaf], "Mendocino", "Zen2"),
  amd(0x19, [0x00, 0x0f], "Milan", "Zen3"),
  amd(0x19, [0x10, 0x1f], "Genoa", "Zen4"),
  amd(0x19, [0x20, 0x2f], "Vermeer", "Zen3"),
  amd(0x19, [0x40, 0x4f], "Rembrandt", "Zen3"),
  amd(0x19, [0x50, 0x5f], "Cezanne", "Zen3"),
  amd(0x19, [0x60, 0x6f], "Raphael", "Zen4"),
  amd(0x19, [0x70, 0x7f], "Phoenix", "Zen4"),
  amd(0x19, [0xa0, 0xaf], "Bergamo", "Zen4"),
  amd(0x1a, [0x00, 0x1f], "Turin", "Zen5"),
  amd(0x1a, [0x20, 0x2f], "StrixPoint", "Zen5"),
  amd(0x1a, [0x40, 0x4f], "GraniteRidge", "Zen5"),
];

// Implementer and part numbers of MIDR_EL1, from the kernel's asm/cputype.h.
const armImplementers: Readonly<Record<number, string>> = {
  65: "ARM",
  67: "Cavium",
  70: "Fujitsu",
  72: "HiSilicon",
  78: "NVIDIA",
  97: "Apple",
  109: "Microsoft",
  112: "Phytium",
  192: "Ampere",
};

const armParts: Readonly<Record<number, Readonly<Record<number, string>>>> = {
  65: {
    3331: "Cortex-A53",
    3335: "Cortex-A57",
    3336: "Cortex-A72",
    3339: "Cortex-A76",
    3340: "Neoverse-N1",
    3392: "Neoverse-V1",
    3401: "Neoverse-N2",
    3402: "Neoverse-E1",
    3407: "Neoverse-V2",
    3459: "Neoverse-V3AE",
    3460: "Neoverse-V3",
    3470: "Neoverse-N3",
  },
  67: { 161: "ThunderX", 175: "ThunderX2" },
  70: { 1: "A64FX" },
  72: { 3329: "TaiShan-V110" },
  78: { 4: "Carmel", 16: "Olympus" },
  109: { 3401: "Cobalt-100" },
  112: { 1634: "FTC662", 1635: "FTC663" },
  192: { 2755: "Ampere-1", 2756: "Ampere-1A" },
};

/** Returns the names of an x86 processor; empty if it is unknown. */
export function identifyX86(
  vendor?: string,
  family?: number,
  model?: number,
  stepping?: number,
): CpuModelNames {
  const rows = vendor === "GenuineIntel" ? intelRows : vendor === "AuthenticAMD" ? amdRows : [];
  if (family === undefined || model === undefined) return {};
  const row = rows.find(
    (row) =>
      row.family === family &&
      within(model, row.models) &&
      (!row.steppings || (stepping !== undefined && within(stepping, row.steppings))),
  );
  return row ? { codeName: row.codeName, microarchitecture: row.microarchitecture ?? row.codeName } : {};
}

/** Returns the names of an arm64 processor by the implementer and part in /proc/cpuinfo. Unknown names are omitted. */
export function identifyArm(implementer: number, part: number): CpuModelNames {
  const vendor = armImplementers[implementer];
  const name = armParts[implementer]?.[part];
  return { ...(vendor ? { vendor } : {}), ...(name ? { codeName: name, microarchitecture: name } : {}) };
}

function within(value: number, [lowest, highest]: readonly [number, number]): boolean {
  return value >= lowest && value <= highest;
}

function intel(codeName: string, ...models: number[]): X86Row[] {
  return models.map((model) => ({ family: 6, models: [model, model], codeName }));
}

function amd(family: number, models: X86Row["models"], codeName: string, microarchitecture: string): X86Row {
  return { family, models, codeName, microarchitecture };
}
