import { describe, expect, it } from "vitest";
import { arm64, x86 } from "../../../../test/fixtures/machines.ts";
import { parseCpuInfo } from "./cpu-info.ts";

describe("code names", () => {
  it.each([
    ["GenuineIntel", 6, 0x55, 4, "SkyLake"],
    ["GenuineIntel", 6, 0x55, 7, "CascadeLake"],
    ["GenuineIntel", 6, 0x55, 11, "CooperLake"],
    ["GenuineIntel", 6, 0x6a, 6, "IceLake"],
    ["GenuineIntel", 6, 0x8f, 8, "SapphireRapids"],
    ["GenuineIntel", 6, 0xcf, 2, "EmeraldRapids"],
    ["AuthenticAMD", 0x17, 0x31, 0, "Rome"],
    ["AuthenticAMD", 0x19, 0x01, 1, "Milan"],
    ["AuthenticAMD", 0x19, 0x11, 1, "Genoa"],
    ["AuthenticAMD", 0x19, 0xa0, 2, "Bergamo"],
    ["AuthenticAMD", 0x1a, 0x02, 1, "Turin"],
    ["GenuineIntel", 6, 0xfe, 0, undefined],
    ["GenuineIntel", 6, 0x55, 9, undefined],
    ["AuthenticAMD", 0x99, 0x01, 0, undefined],
    ["AnotherVendor", 6, 0x55, 4, undefined],
  ])("%s family %i model %i stepping %i is %s", (vendor, family, model, stepping, codeName) => {
    const info = parseCpuInfo(x86(vendor, family, model, stepping, "name", "fpu")());
    expect(info.codeName).toBe(codeName);
    expect(info).toMatchObject({ vendor, family });
  });

  it.each([
    ["0x41", "0xd0c", "ARM", "Neoverse-N1"],
    ["0x41", "0xd4f", "ARM", "Neoverse-V2"],
    ["0xc0", "0xac3", "Ampere", "Ampere-1"],
    ["0x41", "0xfff", "ARM", undefined],
    ["0x99", "0xd0c", undefined, undefined],
  ])("arm64 implementer %s part %s is %s %s", (implementer, part, vendor, codeName) => {
    const info = parseCpuInfo(arm64(implementer, part, "fp asimd")());
    expect(info.vendor).toBe(vendor);
    expect(info.codeName).toBe(codeName);
    expect(info.flags).toEqual(["fp", "asimd"]);
  });
});

describe("flags", () => {
  it("are those that all CPUs have", () => {
    expect(parseCpuInfo("flags: a b c\n\nflags: c b\n").flags).toEqual(["b", "c"]);
  });

  it("of a block that was cut off do not count", () => {
    expect(parseCpuInfo("flags: a b c\n\nflags: a", true).flags).toEqual(["a", "b", "c"]);
  });

  it("of an only block count although it was cut off", () => {
    expect(parseCpuInfo("flags: a b", true).flags).toEqual(["a", "b"]);
  });
});

it("makes nothing up for text that is no cpuinfo", () => {
  expect(parseCpuInfo("<html>no: such\u0000thing")).toEqual({ flags: [] });
});
