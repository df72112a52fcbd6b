import { CONTRACT, type DriverParts, poolOf, services, untilCancelled } from "../test-driver.ts";
import { type Breach, type BrokenDriver, refuse } from "./breach.ts";

const info =
  (changes: Partial<DriverParts["info"]>): BrokenDriver =>
  () => ({
    info: {
      type: "DRAPlugin",
      name: "gpu.example.com",
      endpoint: "",
      supportedVersions: [CONTRACT, ...services],
      ...changes,
    },
  });

/** Drivers that break a rule about the registration or the stream of devices. */
export const registrationBreaches: readonly Breach[] = [
  ["get-info", "another type", info({ type: "CSIPlugin" })],
  ["get-info", "a relative endpoint", info({ endpoint: "driver.sock" })],
  ["driver-name", "a name with an underscore", info({ name: "gpu_driver" })],
  ["versions", "a misspelt service", info({ supportedVersions: [CONTRACT, `${CONTRACT}.DevicePrepration`] })],
  ["versions", "no package", info({ supportedVersions: ["v1.DRAPlugin"] })],
  ["versions-served", "a service that is listed alone", () => ({ status: undefined })],
  [
    "notify",
    "an error",
    () => ({
      async notify() {
        throw refuse("why me");
      },
    }),
  ],
  [
    "first-message",
    "no message",
    ({ hang }) => ({
      // biome-ignore lint/correctness/useYield: the stream has no message
      async *devices(_, { signal }) {
        await hang(signal);
      },
    }),
  ],
  [
    "first-message",
    "a stream that ends",
    () => ({
      async *devices() {},
    }),
  ],
  [
    "valid-devices",
    "a device whose name is no DNS label",
    () => ({
      async *devices(_, { signal }) {
        yield poolOf("gpu-0", "gpu-1", "gpu.2");
        await untilCancelled(signal);
      },
    }),
  ],
  [
    "whole-state-again",
    "later streams lack what was sent before",
    ({ hang }) => {
      let streams = 0;
      return {
        async *devices(_, { signal }) {
          // The first shows that the service is served.
          const isLate = ++streams > 2;
          yield isLate ? poolOf("gpu-1") : poolOf("gpu-0", "gpu-1");
          await (isLate && streams === 3 ? hang(signal) : untilCancelled(signal));
        },
      };
    },
  ],
  [
    "whole-state-again",
    "the devices of later streams have other attributes",
    ({ hang }) => {
      let streams = 0;
      const devices = (model: string) => ({
        pools: [
          { devices: ["gpu-0", "gpu-1"].map((name) => ({ name, attributes: { model: { string: model } } })) },
        ],
      });
      return {
        async *devices(_, { signal }) {
          const isLate = ++streams > 2;
          yield devices(isLate ? "none" : "alpha");
          await (isLate && streams === 3 ? hang(signal) : untilCancelled(signal));
        },
      };
    },
  ],
];
