import {
  PrepareDevicesRequest,
  PrepareDevicesResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { expect, it } from "vitest";
import {
  type ContainerEdits,
  checkOlderAgent,
  claimToPrepare,
  claimToUnprepare,
  type PreparedClaim,
  prepareResponse,
} from "./device-claim.ts";

const device = { request: "req", pool: "worker-1", device: "nic-0" };

function sent(prepared: Parameters<typeof prepareResponse>[0]): PrepareDevicesResponse {
  const message = PrepareDevicesResponse.fromPartial(prepareResponse(prepared));
  return PrepareDevicesResponse.decode(PrepareDevicesResponse.encode(message).finish());
}

it("every edit of a device and of the claim reaches the agent", () => {
  const prepared: PreparedClaim = {
    devices: [
      {
        ...device,
        annotations: { "example.com/slot": "3" },
        cdiDeviceIds: ["vendor.com/nic=0"],
        edits: {
          netDevices: [{ hostInterfaceName: "eth1" }, { hostInterfaceName: "eth2", name: "rdma0" }],
          additionalGids: [44],
        },
      },
    ],
    edits: {
      env: { A: "b" },
      deviceNodes: [{ path: "/dev/x", major: 1 }],
      intelRdt: { closId: "gold", schemata: ["L3:0=f"], enableMonitoring: true },
    },
  };
  expect(sent(prepared)).toMatchObject({
    devices: [
      {
        ...device,
        shareId: "",
        annotations: { "example.com/slot": "3" },
        cdiDeviceIds: ["vendor.com/nic=0"],
        edits: {
          netDevices: [
            { hostInterfaceName: "eth1", name: "eth1" },
            { hostInterfaceName: "eth2", name: "rdma0" },
          ],
          additionalGids: [44],
        },
      },
    ],
    edits: {
      env: ["A=b"],
      deviceNodes: [{ path: "/dev/x", major: 1n, minor: 0n }],
      intelRdt: { closId: "gold", l3CacheSchema: "", schemata: ["L3:0=f"], enableMonitoring: true },
    },
  });
});

it("a list of devices is a claim without edits of its own, and a device may have none", () => {
  expect(sent([device])).toMatchObject({ devices: [{ ...device, edits: undefined }], edits: undefined });
});

it.each<[string, ContainerEdits]>([
  ["additionalGids", { additionalGids: [44] }],
  ["intelRdt", { intelRdt: { closId: "gold" } }],
  ["netDevices", { netDevices: [{ hostInterfaceName: "eth1" }] }],
])("an older agent, which would ignore %s, gets an error", (name, edits) => {
  const second = { ...device, device: "nic-1", edits };
  expect(() => checkOlderAgent(prepareResponse([device, second]))).toThrow(
    `the driver's answer has ${name}, which this Nodekeeper agent does not know`,
  );
});

it("an older agent gets an error for edits of the claim, and none for what it knows", () => {
  const edits = { env: { A: "b" } };
  expect(() => checkOlderAgent(prepareResponse({ devices: [device], edits }))).toThrow("of the whole claim");
  const known = { ...device, edits: { ...edits, additionalGids: [] }, annotations: { slot: "3" } };
  expect(() => checkOlderAgent(prepareResponse([device, known]))).not.toThrow();
});

const claimWith = (parameters: string) =>
  PrepareDevicesRequest.fromPartial({ devices: [{ configuration: [{ source: "FromClaim", parameters }] }] });

it("a claim whose configuration is not JSON is refused, and can be unprepared", () => {
  const request = claimWith("{");
  expect(() => claimToPrepare(request)).toThrow(/the opaque parameters of the claim are no JSON/);
  expect(claimToUnprepare(request).devices[0]?.configuration).toEqual([
    { source: "FromClaim", parameters: undefined, parametersText: "{" },
  ]);
});

it("other configuration is parsed for both", () => {
  const request = claimWith('{"mode":"a"}');
  for (const claim of [claimToPrepare(request), claimToUnprepare(request)])
    expect(claim.devices[0]?.configuration[0]?.parameters).toEqual({ mode: "a" });
});
