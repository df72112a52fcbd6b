import type { PrepareDevicesRequest } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { preparedDevice } from "../test-driver.ts";
import { answerFor, type Breach, claimTable, refuse } from "./breach.ts";

// Longer than a request takes to arrive.
const WORK_MS = 15;

/** Drivers that break a rule about preparing and unpreparing claims. */
export const preparationBreaches: readonly Breach[] = [
  [
    "prepare",
    "an error",
    () => ({
      async prepare() {
        throw refuse("no");
      },
    }),
  ],
  ["prepare", "no answer", ({ hang }) => ({ prepare: (_, { signal }) => hang(signal) })],
  [
    "answer",
    "a variable without a value",
    () => ({
      prepare: async ({ devices }) => ({
        devices: devices.map((device) => ({ ...preparedDevice(device), edits: { env: ["DEVICE"] } })),
      }),
    }),
  ],
  [
    "answer",
    "no device",
    () => ({
      prepare: async () => ({}),
    }),
  ],
  [
    "prepare-again",
    "an answer that depends on the call",
    () => {
      let calls = 0;
      return {
        prepare: async ({ devices }) => ({
          devices: devices.map((device) => preparedDevice(device, `CALL=${++calls}`)),
        }),
      };
    },
  ],
  ["restore-claims", "an unknown UID", () => ({ restore: async () => ({ prepareAgain: ["other"] }) })],
  [
    "unprepare",
    "an error for prepared claims",
    () => {
      const table = claimTable();
      return {
        prepare: async (request) => table.prepare(request),
        async unprepare({ claim }) {
          if (table.prepared.has(claim!.uid)) throw refuse("busy");
          return {};
        },
      };
    },
  ],
  [
    "unprepare-again",
    "an error for claims that ended",
    () => {
      const table = claimTable();
      return {
        prepare: async (request) => table.prepare(request),
        async unprepare(request) {
          if (!table.prepared.has(request.claim!.uid) && table.ended.has(request.claim!.uid))
            throw refuse("gone");
          return table.unprepare(request);
        },
      };
    },
  ],
  [
    "unprepare-unknown",
    "an error for claims that were never prepared",
    () => {
      const table = claimTable();
      return {
        prepare: async (request) => table.prepare(request),
        async unprepare(request) {
          const { uid } = request.claim!;
          if (!table.prepared.has(uid) && !table.ended.has(uid)) throw refuse("who?");
          return table.unprepare(request);
        },
      };
    },
  ],
  [
    "prepare-after-unprepare",
    "an error for claims that ended",
    () => {
      const table = claimTable();
      return {
        async prepare(request) {
          if (table.ended.has(request.claim!.uid)) throw refuse("gone");
          return table.prepare(request);
        },
        unprepare: async (request) => table.unprepare(request),
      };
    },
  ],
  [
    "overlapping",
    "state that calls share",
    ({ clock }) => {
      let current: PrepareDevicesRequest;
      return {
        async prepare(request) {
          current = request;
          await clock.sleep(WORK_MS);
          return answerFor(current.devices);
        },
      };
    },
  ],
  [
    "cancelled",
    "a lock that a cancelled call keeps",
    ({ clock }) => {
      const locked = new Set<string>();
      return {
        async prepare({ claim, devices }, { signal }) {
          if (locked.has(claim!.uid)) throw refuse("locked");
          locked.add(claim!.uid);
          await clock.sleep(WORK_MS, signal);
          locked.delete(claim!.uid);
          return answerFor(devices);
        },
      };
    },
  ],
  [
    "prepare-time",
    "an error after many calls",
    () => {
      let calls = 0;
      return {
        // Before the measurement, one claim has the second device.
        async prepare({ devices }) {
          if (devices[0]?.device === "gpu-1" && ++calls === 3) throw refuse("out of handles");
          return answerFor(devices);
        },
      };
    },
  ],
];
