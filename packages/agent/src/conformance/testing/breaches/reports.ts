import { untilCancelled } from "../test-driver.ts";
import { type Breach, claimTable, refuse } from "./breach.ts";

/** Drivers that break a rule about what they report, or are told. */
export const reportsBreaches: readonly Breach[] = [
  [
    "health",
    "a device that is both healthy and not",
    () => ({
      async *health(_, { signal }) {
        yield { devices: [true, false].map((healthy) => ({ device: "gpu-0", healthy })) };
        await untilCancelled(signal);
      },
    }),
  ],
  [
    "health",
    "only changes in later streams",
    ({ hang }) => {
      let streams = 0;
      return {
        async *health(_, { signal }) {
          // The first shows that the service is served.
          const isLate = ++streams > 2;
          yield isLate ? {} : { devices: [{ device: "gpu-0", healthy: true }] };
          await (isLate ? hang(signal) : untilCancelled(signal));
        },
      };
    },
  ],
  [
    "health",
    "of a device that is not streamed",
    () => ({
      async *health(_, { signal }) {
        yield { devices: [{ device: "gpu-9", healthy: true }] };
        await untilCancelled(signal);
      },
    }),
  ],
  [
    "health",
    "nothing",
    ({ hang }) => ({
      // biome-ignore lint/correctness/useYield: the stream has no message
      async *health(_, { signal }) {
        await hang(signal);
      },
    }),
  ],
  [
    "status",
    "data that is no JSON",
    () => ({
      async *status(_, { signal }) {
        yield { devices: [{ claimUid: "a", device: "gpu-0", data: "no JSON" }] };
        await untilCancelled(signal);
      },
    }),
  ],
  [
    "status",
    "a device that the claim does not have",
    () => {
      const table = claimTable();
      return {
        prepare: async (request) => table.prepare(request),
        unprepare: async (request) => table.unprepare(request),
        async *status(_, { signal }) {
          yield { devices: [...table.prepared].map((claimUid) => ({ claimUid, device: "gpu-9" })) };
          await untilCancelled(signal);
        },
      };
    },
  ],
  [
    "feedback",
    "an error",
    () => ({
      async feedback() {
        throw refuse("no, I am right");
      },
    }),
  ],
  [
    "allocations",
    "an error when the claim is gone",
    () => {
      let isTold = false;
      return {
        async *devices(_, { signal }) {
          const conditions = { bindingConditions: ["Attached"], bindingFailureConditions: ["Failed"] };
          yield { pools: [{ devices: [{ name: "gpu-0", ...conditions }] }] };
          await untilCancelled(signal);
        },
        async allocations({ claims }) {
          if (isTold && claims.length === 0) throw refuse("it is attached already");
          isTold = claims.length > 0;
          return {};
        },
      };
    },
  ],
];
