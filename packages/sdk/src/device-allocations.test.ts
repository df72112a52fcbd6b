import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DeepPartial,
  DeviceBindingDefinition,
  ReportAllocationsRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { UnaryChannel } from "@nodekeeper/core/grpc";
import { expect, it } from "vitest";
import { type AllocationHandler, serveDeviceDriver } from "./index.ts";

const ALLOCATED_AT = Date.parse("2026-03-01T12:00:00.000Z");
const pod = { name: "pod", uid: "pod-uid", namespace: "default", serviceAccount: "default" };
const device = {
  request: "req",
  pool: "fabric",
  device: "gpu-0",
  bindingConditions: ["example.com/Attached"],
  bindingFailureConditions: ["example.com/AttachFailed"],
};
const claim = (parameters: string): DeepPartial<ReportAllocationsRequest["claims"][number]> => ({
  claim: { namespace: "default", name: "claim", uid: "uid-1" },
  pods: [pod],
  devices: [{ ...device, configuration: [{ source: "FromClaim", parameters }] }],
  allocatedAt: BigInt(ALLOCATED_AT),
});

/** Sends a message to a driver of the SDK over its socket. */
async function send(message: DeepPartial<ReportAllocationsRequest>, onAllocations: AllocationHandler) {
  const socketDir = mkdtempSync(join(tmpdir(), "nka-"));
  const driver = serveDeviceDriver({
    name: "gpu.example.com",
    socketDir,
    onAllocations,
    async *devices() {
      yield [{ devices: [] }];
    },
    async *status() {
      yield [];
    },
  });
  await driver.ready;
  const channel = new UnaryChannel(driver.socketPath, { maxReceiveBytes: 1_000 });
  try {
    const request = ReportAllocationsRequest.encode(ReportAllocationsRequest.fromPartial(message)).finish();
    const path = `${DeviceBindingDefinition.fullName}/ReportAllocations`;
    await channel.call(path, [request], new AbortController().signal);
  } finally {
    channel.close();
    await driver.stop();
    rmSync(socketDir, { recursive: true });
  }
}

it("calls the author with the claims, also if the configuration of one is not JSON", async () => {
  const seen: unknown[] = [];
  await send({ claims: [claim('{"link":2}'), claim("{")] }, (claims) => void seen.push(...claims));
  const expected = (parameters: unknown, parametersText: string) => ({
    namespace: "default",
    name: "claim",
    uid: "uid-1",
    pods: [pod],
    devices: [{ ...device, configuration: [{ source: "FromClaim", parameters, parametersText }] }],
    allocatedAt: new Date(ALLOCATED_AT),
  });
  expect(seen).toMatchObject([expected({ link: 2 }, '{"link":2}'), expected(undefined, "{")]);
});

it("returns the error of a handler that throws, so that the agent calls again", async () => {
  const failing = () => {
    throw new Error("switch is down");
  };
  await expect(send({ claims: [] }, failing)).rejects.toThrow(/switch is down/);
});
