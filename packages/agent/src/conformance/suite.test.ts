import { expect, it } from "vitest";
import { rules } from "./rules.ts";
import { answerFor, refuse } from "./testing/breaches/breach.ts";
import { checkTestDriver, rulesOf } from "./testing/check-test-driver.ts";
import { type DriverParts, preparedDevice } from "./testing/test-driver.ts";

it("a driver that keeps the contract passes every rule that needs no other process", async () => {
  const findings = await checkTestDriver(() => ({}));
  expect(findings.filter(({ result }) => result === "fail")).toEqual([]);
  expect(rulesOf(findings, "skip")).toEqual(["unprepare-refused", "restart", "restart-claims", "clean-end"]);
  expect(findings.map(({ rule }) => rule)).toEqual(Object.keys(rules));
});

it("without preparation, no claim is prepared", async () => {
  const called: string[] = [];
  const findings = await checkTestDriver(
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

it("without preparation, it is still noticed that a listed service is not served", async () => {
  const findings = await checkTestDriver(() => ({ prepare: undefined }), { prepares: false });
  expect(rulesOf(findings, "fail")).toEqual(["versions-served"]);
});

it("claims have the configuration, and none stays prepared", async () => {
  const prepared = new Set<string>();
  const configurations = new Set<string>();
  const left: string[] = [];
  await checkTestDriver(
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
    { configuration: '{"mode":"a"}', onLeftPrepared: (devices) => left.push(...devices) },
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
  const findings = await checkTestDriver(() => parts, { only: ["worker-1/gpu-1"] });
  expect([...prepared]).toEqual(["gpu-1"]);
  expect(findings.find(({ rule }) => rule === "overlapping")).toMatchObject({
    result: "skip",
    message: "needs 2 devices that can be allocated together; there are 1",
  });
  const wrong = await checkTestDriver(() => parts, { only: ["gpu-7"] });
  expect(rulesOf(wrong, "fail")).toEqual(["allocations", "prepare"]);
});

it("names the devices that could not be unprepared", async () => {
  const left: string[] = [];
  await checkTestDriver(
    () => ({
      async unprepare() {
        throw refuse("busy");
      },
    }),
    { onLeftPrepared: (devices) => left.push(...devices) },
  );
  expect(left).toEqual(["worker-1/gpu-0"]);
});
