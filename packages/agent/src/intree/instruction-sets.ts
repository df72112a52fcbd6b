// Flags in /proc/cpuinfo that name instruction sets. Other flags are reported only as cpu_flags, if enabled.
const x86 =
  /^(?:sse|sse2|ssse3|sse4_1|sse4_2|sse4a|avx|avx2|avx512\w+|avx_\w+|avx10\w*|amx_\w+|fma|f16c|aes|vaes|pclmulqdq|vpclmulqdq|sha_ni|gfni|bmi1|bmi2|adx|popcnt|movbe)$/;
const arm64 =
  /^(?:fp|asimd\w*|sve\w*|sme\w*|aes|pmull|sha1|sha2|sha3|sha512|crc32|atomics|bf16|i8mm|fphp|flagm)$/;

/**
 * Returns the instruction sets among a processor's flags, sorted. If "avx512f" is present, "avx512" is added, because
 * schedulers that read katalyst's `cis` expect this name.
 */
export function instructionSets(flags: readonly string[]): string[] {
  const rule = flags.includes("asimd") ? arm64 : x86;
  const found = flags.map((flag) => flag.toLowerCase()).filter((flag) => rule.test(flag));
  if (found.includes("avx512f")) found.push("avx512");
  return [...new Set(found)].sort();
}
