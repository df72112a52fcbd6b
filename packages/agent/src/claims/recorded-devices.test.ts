import { expect, it } from "vitest";
import {
  devicesOfHeader,
  devicesOfTexts,
  deviceTexts,
  headerDevices,
  type PreparedDevice,
} from "./recorded-devices.ts";

const [fast, safe] = ["fast", "safe"].map((mode) => ({
  source: "FromClaim",
  parameters: `{"mode":"${mode}"}`,
}));
const gpu = (number: number, configuration = [fast!, safe!]): PreparedDevice => ({
  request: "req",
  pool: "worker-1",
  device: `gpu-${number}`,
  shareId: "one",
  consumedCapacity: { memory: "10Gi" },
  adminAccess: true,
  configuration,
  cdiDeviceIds: ["k8s.gpu.example.com/claim=a"],
});

it("devices are read as they were written, and a configuration that they share is written once", () => {
  const devices = [gpu(0), gpu(1), gpu(2, [safe!])];
  const texts = deviceTexts(devices);
  expect(devicesOfTexts(texts)).toEqual(devices);
  expect(JSON.parse(texts.configuration)).toEqual([fast, safe]);
});

it("a header has all but configuration", () => {
  expect(devicesOfHeader(headerDevices([gpu(0)]))).toEqual([gpu(0, [])]);
});
