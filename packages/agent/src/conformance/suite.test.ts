import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type PrepareDevicesRequest,
  PrepareDevicesRequest as Request,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { FakeClock } from "@nodekeeper/core/lib";
import { type Server, ServerError, Status } from "nice-grpc";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ConformanceOptions } from "./bench.ts";
import type { Finding } from "./finding.ts";
import { type RuleId, rules } from "./rules.ts";
import { checkDriver } from "./suite.ts";
import {
  type DriverParts,
  poolOf,
  preparedDevice,
  serveTestDriver,
  services,
  untilCancelled,
} from "./testing/test-driver.ts";

const CONTRACT = "nodekeeper.devices.v1alpha2";
// Longer than a request takes to arrive.
const WORK_MS = 15;
const refuse = (why: string) => new ServerError(Status.INTERNAL, why);

let directory: string;
let server: Server | undefined;
/** Devices that the suite could not unprepare. */
let left: string[];
beforeEach(() => {
  left = [];
  directory = mkdtempSync(join(tmpdir(), "nkc-"));
});
afterEach(() => {
  server?.forceShutdown();
  rmSync(directory, { recursive: true, force: true });
});

/** What tests of broken drivers use. */
interface Trouble {
  /** Makes time pass quickly until the next finding, because the driver does not answer. */
  hang(signal: AbortSignal): Promise<never>;
  crash(): void;
  clock: FakeClock;
}

/**
 * Runs the suite. Time passes at a fraction of its usual speed, so that no deadline is missed on a busy machine, unless
 * the driver hangs.
 */
async function check(
  change: (trouble: Trouble) => Partial<DriverParts>,
  options: Partial<ConformanceOptions> = {},
): Promise<Finding[]> {
  const clock = new FakeClock();
  let isHanging = false;
  const trouble: Trouble = {
    hang(signal) {
      isHanging = true;
      return untilCancelled(signal);
    },
    crash: () => server?.forceShutdown(),
    clock,
  };
  const place = join(directory, "driver.sock");
  server = await serveTestDriver(place, change(trouble));
  const findings: Finding[] = [];
  const all = {
    place,
    command: undefined,
    restartCommand: undefined,
    idle: true,
    prepares: true,
    configuration: undefined,
    only: [],
    calls: 10,
    nodeName: "worker-1",
    onLeftPrepared: (devices: readonly string[]) => left.push(...devices),
    clock,
    ...options,
  };
  let isOver = false;
  const steps = (async () => {
    while (!isOver) {
      await clock.step(isHanging ? 5_000 : 1);
      await sleep(2);
    }
  })();
  try {
    for await (const finding of checkDriver(all, new AbortController().signal)) {
      isHanging = false;
      findings.push(finding);
    }
  } finally {
    isOver = true;
    await steps;
  }
  return findings;
}

const rulesOf = (findings: readonly Finding[], wanted: Finding["result"]) =>
  findings.filter(({ result }) => result === wanted).map(({ rule }) => rule);

it("a driver that keeps the contract passes every rule that needs no other process", async () => {
  const findings = await check(() => ({}));
  expect(findings.filter(({ result }) => result === "fail")).toEqual([]);
  expect(rulesOf(findings, "skip")).toEqual(["unprepare-refused", "restart", "restart-claims", "clean-end"]);
  expect(findings.map(({ rule }) => rule)).toEqual(Object.keys(rules));
});

it("without preparation, no claim is prepared", async () => {
  const called: string[] = [];
  const findings = await check(
    () => ({
      async prepare() {
        called.push("prepare");
        return {};
      },
      async unprepare() {
        called.push("unprepare");
        return {};
      },
    }),
    { prepares: false },
  );
  expect(called).toEqual([]);
  expect(rulesOf(findings, "fail")).toEqual([]);
  expect(findings.find(({ rule }) => rule === "prepare")).toMatchObject({
    result: "skip",
    message: "--no-prepare",
  });
});

it("claims have the configuration, and none stays prepared", async () => {
  const prepared = new Set<string>();
  const configurations = new Set<string>();
  await check(
    () => ({
      async prepare({ claim, devices }) {
        prepared.add(claim!.uid);
        for (const { configuration } of devices) configurations.add(configuration[0]?.parameters ?? "");
        if (prepared.size > 3) throw refuse("no more");
        return { devices: devices.map((device) => preparedDevice(device)) };
      },
      async unprepare({ claim }) {
        prepared.delete(claim!.uid);
        return {};
      },
    }),
    { configuration: '{"mode":"a"}' },
  );
  expect([...configurations]).toContain('{"mode":"a"}');
  expect([...prepared]).toEqual([]);
  expect(left).toEqual([]);
});

it("only the devices that may be prepared are", async () => {
  const prepared = new Set<string>();
  const parts: Partial<DriverParts> = {
    async prepare({ devices }) {
      for (const { device } of devices) if (device.startsWith("gpu")) prepared.add(device);
      return answerFor(devices);
    },
  };
  const findings = await check(() => parts, { only: ["worker-1/gpu-1"] });
  expect([...prepared]).toEqual(["gpu-1"]);
  expect(findings.find(({ rule }) => rule === "overlapping")).toMatchObject({
    result: "skip",
    message: "needs 2 devices that can be allocated together; there are 1",
  });
  server?.forceShutdown();
  const wrong = await check(() => parts, { only: ["gpu-7"] });
  expect(rulesOf(wrong, "fail")).toEqual(["allocations", "prepare"]);
});

it("names the devices that could not be unprepared", async () => {
  await check(() => ({
    async unprepare() {
      throw refuse("busy");
    },
  }));
  expect(left).toEqual(["worker-1/gpu-0"]);
});

/** Remembers which claims are prepared, and which were unprepared. */
function claimTable() {
  const prepared = new Set<string>();
  const ended = new Set<string>();
  return {
    prepared,
    ended,
    prepare({ claim, devices }: PrepareDevicesRequest) {
      prepared.add(claim!.uid);
      return { devices: devices.map((device) => preparedDevice(device)) };
    },
    unprepare({ claim }: { claim?: { uid: string } | undefined }) {
      if (prepared.delete(claim!.uid)) ended.add(claim!.uid);
      return {};
    },
  };
}

const answerFor = (devices: PrepareDevicesRequest["devices"]) => ({
  devices: devices.map((device) => preparedDevice(device)),
});

function checkConfiguration([device]: PrepareDevicesRequest["devices"]): void {
  if (device?.configuration[0]?.parameters === "{") throw refuse("no JSON");
}

type Breach = (trouble: Trouble) => Partial<DriverParts>;
const info =
  (changes: Partial<DriverParts["info"]>): Breach =>
  () => ({
    info: {
      type: "DRAPlugin",
      name: "gpu.example.com",
      endpoint: "",
      supportedVersions: [CONTRACT, ...services],
      ...changes,
    },
  });

const breaches: [RuleId, string, Breach][] = [
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

it.each(breaches)("%s is broken by %s, and no other rule", async (rule, _, change) => {
  const findings = await check(change);
  const failed = findings.filter(({ result }) => result === "fail");
  expect(failed.map((finding) => [finding.rule, finding.message])).toEqual([
    [rule, expect.stringMatching(/./)],
  ]);
});

it("each rule has a driver that breaks it", () => {
  const ofProcesses = ["restart", "restart-claims", "clean-end"];
  const broken = new Set([...breaches.map(([rule]) => rule), ...ofProcesses]);
  expect([...broken].sort()).toEqual(Object.keys(rules).sort());
});
