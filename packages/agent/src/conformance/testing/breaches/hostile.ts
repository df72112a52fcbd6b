import { PrepareDevicesRequest as Request } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { answerFor, type Breach, refuse } from "./breach.ts";

function checkConfiguration([device]: Request["devices"]): void {
  if (device?.configuration[0]?.parameters === "{") throw refuse("no JSON");
}

/** Drivers that do not withstand what they do not expect. */
export const hostileBreaches: readonly Breach[] = [
  [
    "unknown-fields",
    "an error",
    () => ({
      decodePrepare(bytes) {
        // The tag of field 2,000.
        if (Buffer.from(bytes).includes(Buffer.from([0x82, 0x7d]))) throw new Error("what is field 2000?");
        return Request.decode(bytes);
      },
    }),
  ],
  [
    "no-devices",
    "a device that the claim does not have",
    () => ({
      prepare: async ({ devices }) =>
        devices.length > 0
          ? answerFor(devices)
          : { devices: [{ request: "devices", pool: "p", device: "gpu-0" }] },
    }),
  ],
  [
    "unknown-device",
    "no answer",
    ({ hang }) => ({
      prepare: async ({ devices }, { signal }) =>
        devices[0]?.device === "no-such-device" ? await hang(signal) : answerFor(devices),
    }),
  ],
  [
    "configuration",
    "a crash",
    ({ crash }) => ({
      async prepare({ devices }) {
        if (devices[0]?.configuration[0]?.parameters === "{") crash();
        return answerFor(devices);
      },
    }),
  ],
  [
    "unprepare-refused",
    "an error for configuration that it does not understand",
    () => ({
      async prepare({ devices }) {
        checkConfiguration(devices);
        return answerFor(devices);
      },
      async unprepare({ devices }) {
        checkConfiguration(devices);
        return {};
      },
    }),
  ],
  [
    "long-names",
    "a crash",
    ({ crash }) => ({
      async prepare({ devices }) {
        if ((devices[0]?.pool.length ?? 0) > 1_000) crash();
        return answerFor(devices);
      },
    }),
  ],
  [
    "long-names",
    "a crash, after which it is started again",
    ({ crashAndStart }) => ({
      async prepare({ devices }) {
        if ((devices[0]?.pool.length ?? 0) > 1_000) crashAndStart();
        return answerFor(devices);
      },
    }),
  ],
  [
    "malformed-request",
    "a crash, after which it is started again",
    ({ crashAndStart }) => ({
      decodePrepare(bytes) {
        try {
          return Request.decode(bytes);
        } catch (error) {
          crashAndStart();
          throw error;
        }
      },
    }),
  ],
  [
    "many-devices",
    "only some of them",
    () => ({
      prepare: async ({ devices }) => answerFor(devices.slice(0, 64)),
    }),
  ],
  [
    "malformed-request",
    "an answer",
    () => ({
      decodePrepare(bytes) {
        try {
          return Request.decode(bytes);
        } catch {
          return Request.fromPartial({});
        }
      },
    }),
  ],
];
