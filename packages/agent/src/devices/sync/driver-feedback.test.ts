import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  DriverFeedbackDefinition,
  type Problem,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { createServer, ServerError, Status } from "nice-grpc";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { DeviceFindings } from "./device-news.ts";
import { DriverFeedback } from "./driver-feedback.ts";

let directory: string;
let stop: AbortController;
let running: Promise<void>;
let server: ReturnType<typeof createServer>;
const clock = new FakeClock();
const calls: Problem[][] = [];
let answer: (signal: AbortSignal) => Promise<object>;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "nkfb-"));
  stop = new AbortController();
  calls.length = 0;
  answer = async () => ({});
  server = createServer();
  server.add(DriverFeedbackDefinition, {
    reportProblems: async ({ problems }, { signal }) => {
      calls.push(problems);
      return await answer(signal);
    },
  });
  await server.listen(`unix:${join(directory, "driver.sock")}`);
});

afterEach(async () => {
  stop.abort();
  await running;
  server.forceShutdown();
  rmSync(directory, { recursive: true });
});

function start(): DriverFeedback {
  const feedback = new DriverFeedback(clock);
  const options = { driver: "gpu.example.com", endpoint: join(directory, "driver.sock"), log: silentLogger };
  running = feedback.run({ ...options, service: DriverFeedbackDefinition.fullName }, stop.signal);
  return feedback;
}

const nothing: DeviceFindings = { problems: [], quarantined: 0, refusedSlices: new Map(), dropped: [] };
const bad = (device: string) => ({
  pool: "worker-1",
  device,
  field: "attributes[a].version",
  message: "is no version",
});

it("a driver is told all that is wrong with its devices, with the error's ID, and what is left of it", async () => {
  const feedback = start();
  feedback.set({
    problems: [bad("gpu-0")],
    quarantined: 1,
    refusedSlices: new Map([["slice-a", "denied by a webhook"]]),
    dropped: [{ pool: "worker-1", device: "gpu-1", field: "taints", feature: "DRADeviceTaints" }],
  });
  await until("told", () => calls.length === 1);
  const since = BigInt(clock.now());
  expect(calls[0]).toMatchObject([
    {
      errorId: "NK1503",
      pool: "worker-1",
      device: "gpu-0",
      message: "attributes[a].version: is no version",
      since,
    },
    {
      errorId: "NK1517",
      pool: "",
      device: "",
      message: "ResourceSlice slice-a is not written: denied by a webhook",
    },
    {
      errorId: "NK1511",
      device: "gpu-1",
      message: expect.stringContaining("needs the feature DRADeviceTaints"),
    },
  ]);
  // Two changes within the interval are one call. What is left keeps its time.
  feedback.set({ ...nothing, problems: [bad("gpu-0"), bad("gpu-2")], quarantined: 2 });
  feedback.set({ ...nothing, problems: [bad("gpu-0")], quarantined: 1 });
  await clock.step(1_000);
  await until("told again", () => calls.length === 2);
  expect(calls[1]).toMatchObject([{ device: "gpu-0", since }]);
  feedback.set(nothing);
  await clock.step(1_000);
  await until("told the end", () => calls.length === 3);
  expect(calls[2]).toEqual([]);
});

it("is told once that nothing is wrong, and not again while that is so", async () => {
  const feedback = start();
  feedback.set(nothing);
  feedback.set({ ...nothing });
  await until("told", () => calls.length === 1);
  await clock.step(60_000);
  expect(calls).toEqual([[]]);
});

it("a driver that fails or hangs is told again", async () => {
  answer = async () => {
    throw new ServerError(Status.INTERNAL, "out of order");
  };
  const feedback = start();
  feedback.set({ ...nothing, problems: [bad("gpu-0")], quarantined: 1 });
  await until("called", () => calls.length === 1);
  answer = (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve({})));
  await until("called again", async () => {
    await clock.step(2_000);
    return calls.length === 2;
  });
  answer = async () => ({});
  await until("called a third time", async () => {
    await clock.step(2_000);
    return calls.length === 3;
  });
  expect(calls[2]).toMatchObject([{ device: "gpu-0" }]);
});

it("of 10,000 bad devices with long messages it is told as much as fits", async () => {
  const problems = Array.from({ length: 10_000 }, (_, at) => ({
    ...bad(`gpu-${at}`),
    message: "😀".repeat(2_000),
  }));
  start().set({ ...nothing, problems, quarantined: 10_000 });
  await until("told", () => calls.length === 1);
  expect(calls[0]).toHaveLength(1_000);
  expect(calls[0]![0]!.message.length).toBeLessThanOrEqual(1_024);
});

it("problems of claims are told with those of devices, and each keeps its time while it exists", async () => {
  const feedback = start();
  const claim = { errorId: "NK1507", message: "edits: are empty", claimUid: "uid-a" } as const;
  feedback.setClaims([claim]);
  // What is wrong with the devices is not known yet: the list would not be whole.
  await clock.step(60_000);
  expect(calls).toEqual([]);
  const since = BigInt(clock.now());
  feedback.set({ ...nothing, problems: [bad("gpu-0")], quarantined: 1 });
  await until("told", () => calls.length === 1);
  expect(calls[0]).toMatchObject([
    { ...claim, pool: "", device: "", since: since - 60_000n },
    { errorId: "NK1503", device: "gpu-0", claimUid: "", since },
  ]);
  feedback.setClaims([]);
  await clock.step(1_000);
  await until("told the end", () => calls.length === 2);
  expect(calls[1]).toMatchObject([{ errorId: "NK1503", since }]);
  expect(feedback.present).toHaveLength(1);
});
