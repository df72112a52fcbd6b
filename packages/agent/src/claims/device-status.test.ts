import {
  type DeepPartial,
  DeviceStatus,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { expect, it } from "vitest";
import { statusEntry } from "./device-status.ts";

const DRIVER = "nic.example.com";
const ready = { type: "Ready", status: "True", reason: "Configured" };

const entryOf = (reported: DeepPartial<DeviceStatus>) =>
  statusEntry(DRIVER, DeviceStatus.fromPartial({ pool: "worker-1", device: "nic-0", ...reported }));

it("an entry has what was reported, without empty fields", () => {
  expect(entryOf({})).toEqual({ driver: DRIVER, pool: "worker-1", device: "nic-0" });
  expect(
    entryOf({
      shareId: "0b5e3ac4-0f5c-4ed5-9c3b-2c1a4b8a7f10",
      conditions: [{ ...ready, message: "up" }],
      networkData: {
        interfaceName: "net1",
        ips: ["192.0.2.5/24", "2001:db8::5/64"],
        hardwareAddress: "02:00",
      },
    }),
  ).toEqual({
    driver: DRIVER,
    pool: "worker-1",
    device: "nic-0",
    shareID: "0b5e3ac4-0f5c-4ed5-9c3b-2c1a4b8a7f10",
    conditions: [{ ...ready, message: "up" }],
    networkData: { interfaceName: "net1", ips: ["192.0.2.5/24", "2001:db8::5/64"], hardwareAddress: "02:00" },
  });
});

it("integers beyond 2^53 are not rounded", () => {
  const entry = entryOf({
    conditions: [{ ...ready, observedGeneration: 9007199254740993n }],
    data: '{"serial":9007199254740993}',
  });
  expect(JSON.stringify(entry)).toContain('"observedGeneration":9007199254740993');
  expect(JSON.stringify(entry)).toContain('"data":{"serial":9007199254740993}');
});

const nine = Array.from({ length: 9 }, (_, index) => ({ ...ready, type: `T${index}` }));
const seventeen = Array.from({ length: 17 }, (_, index) => `192.0.2.${index}/24`);

it.each<[string, DeepPartial<DeviceStatus>, string]>([
  ["nine conditions", { conditions: nine }, "conditions: 9 are reported, at most 8"],
  ["a type twice", { conditions: [ready, ready] }, 'conditions[1].type: "Ready" is duplicated'],
  ["no type", { conditions: [{ ...ready, type: "" }] }, 'conditions[0].type: "" is not a label name'],
  ["a status", { conditions: [{ ...ready, status: "true" }] }, 'conditions[0].status: "true" is not'],
  ["no reason", { conditions: [{ ...ready, reason: "" }] }, "conditions[0].reason: is required"],
  ["a reason", { conditions: [{ ...ready, reason: "two words" }] }, "is not a CamelCase word"],
  ["a long reason", { conditions: [{ ...ready, reason: "R".repeat(1_025) }] }, "has 1025 bytes"],
  ["a long message", { conditions: [{ ...ready, message: "ä".repeat(16_385) }] }, "has 32770 bytes"],
  [
    "a generation",
    { conditions: [{ ...ready, observedGeneration: -1n }] },
    "observedGeneration: is negative",
  ],
  ["data that is no JSON", { data: "{" }, "data: is not JSON"],
  ["data that is no object", { data: "[]" }, "data: is not a JSON object"],
  ["data that is null", { data: "null" }, "data: is not a JSON object"],
  ["long data", { data: `{"a":"${"x".repeat(10_240)}"}` }, "data: has 10248 bytes, at most 10240"],
  ["deep data", { data: `{"a":${"[".repeat(4_000)}${"]".repeat(4_000)}}` }, "more than 64 levels"],
  ["a number out of range", { data: '{"a":1e999}' }, "data: is not JSON: number 1e999 is too large"],
  ["an interface", { networkData: { interfaceName: "x".repeat(257) } }, "interfaceName: has 257 bytes"],
  ["a hardware address", { networkData: { hardwareAddress: "x".repeat(129) } }, "has 129 bytes"],
  ["17 addresses", { networkData: { ips: seventeen } }, "networkData.ips: 17 are reported, at most 16"],
  ["no CIDR", { networkData: { ips: ["192.0.2.5"] } }, 'networkData.ips[0]: "192.0.2.5" is not an address'],
  ["another form", { networkData: { ips: ["2001:DB8::5/64"] } }, 'canonical form "2001:db8::5/64"'],
  ["an address twice", { networkData: { ips: ["::1/128", "::1/128"] } }, "networkData.ips[1]"],
])("%s is refused", (_, reported, message) => {
  expect(() => entryOf(reported)).toThrow(message);
});
