import { describe, expect, it } from "vitest";
import {
  armMachine,
  type FixtureMachine,
  rootOf,
  twoSockets,
  virtualMachine,
} from "../../../../test/fixtures/machines.ts";
import { Host } from "../host/index.ts";
import { SystemFactsReader } from "./system-facts.ts";
import {
  type Property,
  type PropertyOptions,
  reportedCodeName,
  systemProperties,
} from "./system-properties.ts";

async function propertiesOf(
  machine: FixtureMachine,
  options?: PropertyOptions,
): Promise<Record<string, Property>> {
  const root = await rootOf(machine);
  const { facts } = await new SystemFactsReader(new Host({ root })).read();
  return Object.fromEntries(systemProperties(facts, options).map((each) => [each.propertyName, each]));
}

describe("the properties of", () => {
  it("a server of two sockets", async () => {
    const found = await propertiesOf(twoSockets);
    expect(Object.keys(found)).toEqual([
      "numa",
      "nbw",
      "cpu",
      "memory",
      "cis",
      "topology",
      "cpu_codename",
      "is_vm",
    ]);
    expect(found.numa?.propertyQuantity).toBe("2");
    expect(found.nbw?.propertyQuantity).toBe("50k");
    expect(found.cpu?.propertyQuantity).toBe("14");
    expect(found.memory?.propertyQuantity).toBe("125Gi");
    expect(found.cis?.propertyValues).toEqual([
      "aes",
      "avx",
      "avx2",
      "avx512",
      "avx512_vnni",
      "avx512f",
      "sse4_2",
    ]);
    expect(found.cpu_codename?.propertyValues).toEqual(["Intel_IceLake"]);
    expect(found.is_vm?.propertyValues).toEqual(["false"]);
  });

  it("each of its interfaces as katalyst's Go struct marshals", async () => {
    const found = await propertiesOf(twoSockets);
    const [, eth0] = found.topology?.propertyValues ?? [];
    expect(eth0).toBe(
      '{"NSName":"","NSInode":0,"NSAbsDir":"","Name":"eth0","IfIndex":2,"Speed":25000,"NumaNode":0,' +
        '"Enable":true,"Addr":null,"PCIAddr":"0000:3b:00.0"}',
    );
    expect(found.topology?.propertyValues).toHaveLength(4);
  });

  it("a virtual machine, omitting an unknown bandwidth", async () => {
    const found = await propertiesOf(virtualMachine);
    expect(found).not.toHaveProperty("nbw");
    expect(found.numa?.propertyQuantity).toBe("1");
    expect(found.memory?.propertyQuantity).toBe("4015032Ki");
    expect(found.is_vm?.propertyValues).toEqual(["true"]);
    expect(found.cpu_codename?.propertyValues).toEqual(["AMD_K19Zen3"]);
    expect(JSON.parse(found.topology!.propertyValues![0]!)).toMatchObject({ Speed: -1, NumaNode: -1 });
  });

  it("an arm64 machine", async () => {
    const found = await propertiesOf(armMachine);
    const sets = ["aes", "asimd", "asimdhp", "atomics", "crc32", "fp", "fphp", "pmull", "sha1", "sha2"];
    expect(found.cis?.propertyValues).toEqual(sets);
    expect(found.cpu_codename?.propertyValues).toEqual(["ARM_Neoverse-N1"]);
  });

  it("a machine with a node of memory alone, which is not counted", async () => {
    const nodes = { 0: { cpus: "0-1", memoryKib: 4 }, 1: { cpus: "", memoryKib: 4 } };
    expect((await propertiesOf({ ...virtualMachine, nodes })).numa?.propertyQuantity).toBe("1");
  });
});

it("reports CPU flags as one string, when asked to", async () => {
  expect(await propertiesOf(virtualMachine)).not.toHaveProperty("cpu_flags");
  const found = await propertiesOf(virtualMachine, { cpuFlags: true });
  expect(found.cpu_flags?.propertyValues).toEqual(["fpu,sse4_2,avx2,hypervisor"]);
});

it("sends nothing for what is not known", () => {
  expect(systemProperties({})).toEqual([]);
  expect(reportedCodeName({ vendor: "GenuineIntel", flags: [] })).toBeUndefined();
});
