import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DeepPartial,
  type ContainerEdits as Edits,
  PrepareDevicesResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ownerOf, specOf } from "./cdi-file.ts";
import { HostFiles } from "./host-files.ts";
import { preparedOf } from "./prepared-claim.ts";
import { cdiProblems } from "./testing/cdi-rules.ts";
import { recordedDevice } from "./testing/claim-world.ts";

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "nkpp-"));
  mkdirSync(join(root, "proc/1/net"), { recursive: true });
  writeFileSync(join(root, "proc/1/net/route"), "");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const name = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/);
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.array(arbitrary, { maxLength: 3 });

// Fields of this version of CDI and earlier ones. Without net devices: their names must differ within the claim.
const anyEdits = (newest: string): fc.Arbitrary<DeepPartial<Edits>> =>
  fc
    .record(
      {
        env: some(name.map((each) => `${each}=1`)),
        deviceNodes: some(
          fc.record({
            path: name.map((each) => `/dev/${each}`),
            type: fc.constant("p"),
            permissions: fc.constantFrom("", "rw"),
          }),
        ),
        mounts: some(
          fc.record({
            hostPath: fc.constant("tmpfs"),
            containerPath: name.map((each) => `/${each}`),
            type: fc.constant("tmpfs"),
            options: some(name),
          }),
        ),
        ...(newest >= "0.7.0" && {
          additionalGids: fc.uniqueArray(fc.integer({ min: 1, max: 2 ** 32 - 2 }), { maxLength: 3 }),
          intelRdt: fc.record(
            {
              closId: name,
              l3CacheSchema: name,
              memBwSchema: name,
              ...(newest >= "1.1.0" && { schemata: some(name), enableMonitoring: fc.boolean() }),
            },
            { requiredKeys: ["closId"] },
          ),
        }),
      },
      { requiredKeys: [] },
    )
    .filter((edits) => Object.values(edits).some((value) => !Array.isArray(value) || value.length > 0));

const anyDevice = (newest: string) =>
  fc.record(
    {
      edits: anyEdits(newest),
      ...(newest >= "0.6.0" && {
        annotations: fc.dictionary(
          name.map((each) => `example.com/${each}`),
          fc.string(),
        ),
      }),
    },
    { requiredKeys: [] },
  );

const anyAnswer = fc.constantFrom("0.5.0", "0.6.0", "0.7.0", "1.1.0").chain((newest) =>
  fc.record({
    answers: fc.array(anyDevice(newest), { minLength: 1, maxLength: 4 }),
    edits: fc.option(anyEdits(newest), { nil: undefined }),
    // By the device that gets it; 4: the claim.
    netDevices: fc.array(fc.nat(4), { maxLength: newest >= "1.1.0" ? 2 : 0 }),
  }),
);

it("every file passes CDI 1.1.0's schema and has the lowest version that its edits need", async () => {
  await fc.assert(
    fc.asyncProperty(anyAnswer, async ({ answers, edits, netDevices }) => {
      const devices = answers.map((_, at) => recordedDevice(`gpu-${at}`));
      const interfaces = (at: number) => {
        const own = netDevices.flatMap((of, number) =>
          of === at ? [{ hostInterfaceName: `eth${number}`, name: `net${number}` }] : [],
        );
        return own.length > 0 ? { netDevices: own } : {};
      };
      const withInterfaces = (given: DeepPartial<Edits> | undefined, at: number) => {
        const all = { ...given, ...interfaces(at) };
        return Object.keys(all).length > 0 ? all : undefined;
      };
      const response = PrepareDevicesResponse.fromPartial({
        devices: answers.map((answer, at) => ({
          ...devices[at],
          ...answer,
          edits: withInterfaces(answer.edits, at),
        })),
        edits: withInterfaces(edits, 4),
      });
      const owner = {
        driver: "7gpu.example.com",
        namespace: "default",
        name: "a",
        uid: "0-1",
        boot: "b",
        driverUid: 0,
        pods: [],
      };
      const host = new HostFiles({ root, allowed: ["/"] });
      const { cdi, devices: prepared } = await preparedOf(owner, devices, response, host);
      const wanted = response.devices.map(
        (device) =>
          device.edits !== undefined ||
          response.edits !== undefined ||
          Object.keys(device.annotations).length > 0,
      );
      // A container that uses a device with edits, or any device if there are edits for the claim, gets them.
      expect(prepared.map(({ cdiDeviceIds }) => cdiDeviceIds.length === 1)).toEqual(wanted);
      if (cdi === "") return;
      const spec = specOf(cdi);
      expect(cdiProblems(spec)).toEqual([]);
      expect(prepared.flatMap(({ cdiDeviceIds }) => cdiDeviceIds)).toEqual(
        spec.devices.map((device) => `${spec.kind}=${device.name}`),
      );
      expect(ownerOf(cdi)?.uid).toBe("0-1");
      const gids = response.devices.flatMap((device) => device.edits?.additionalGids ?? []);
      expect(spec.devices.flatMap((device) => device.containerEdits.additionalGids ?? [])).toEqual(gids);
      expect(spec.containerEdits?.additionalGids ?? []).toEqual(response.edits?.additionalGids ?? []);
    }),
    { numRuns: 300 },
  );
});
