import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  DriverFeedbackDefinition,
  ReportProblemsRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { UnaryChannel } from "@nodekeeper/core/grpc";
import { createLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { type ProblemHandler, serveDeviceDriver } from "./index.ts";

const SINCE = Date.parse("2026-03-01T12:00:00.000Z");
const badDevice = { errorId: "NK1503", message: "attributes: too many", pool: "node-1", device: "gpu-0" };
const badClaim = { errorId: "NK1507", message: "no device", claimUid: "uid-1" };
type Sent = Partial<typeof badDevice & typeof badClaim>[];

/** Sends the lists to a driver of the SDK over its socket. Returns the lines that it logged. */
async function send(lists: Sent[], onProblems?: ProblemHandler) {
  const socketDir = mkdtempSync(join(tmpdir(), "nkf-"));
  const lines: Record<string, unknown>[] = [];
  const driver = serveDeviceDriver({
    name: "gpu.example.com",
    socketDir,
    onProblems,
    log: createLogger("warn", { write: (line) => lines.push(JSON.parse(line)) }),
    async *devices() {
      yield [{ devices: [] }];
    },
  });
  await driver.ready;
  const channel = new UnaryChannel(driver.socketPath, { maxReceiveBytes: 1_000 });
  try {
    for (const list of lists) {
      const problems = list.map((problem) => ({ ...problem, since: BigInt(SINCE) }));
      const request = ReportProblemsRequest.encode(ReportProblemsRequest.fromPartial({ problems })).finish();
      const path = `${DriverFeedbackDefinition.fullName}/ReportProblems`;
      await channel.call(path, [request], new AbortController().signal);
    }
  } finally {
    channel.close();
    await driver.stop();
    rmSync(socketDir, { recursive: true });
  }
  return lines;
}

it("calls the author with typed problems, and with none when all have ended", async () => {
  const seen: unknown[] = [];
  const lines = await send([[badDevice, badClaim], []], (problems) => void seen.push(problems));
  const since = new Date(SINCE);
  expect(seen).toEqual([
    [
      { ...badDevice, since },
      { ...badClaim, since },
    ],
    [],
  ]);
  expect(lines).toEqual([]);
});

it("logs each problem once with its ID, and once when it has ended", async () => {
  const lines = await send([[badDevice, badClaim], [badClaim, badDevice], [badClaim]]);
  const texts = lines.map(({ errorId, msg }) => `${errorId} ${msg}`);
  expect(texts).toEqual([
    "NK1503 the agent reports a problem: attributes: too many",
    "NK1507 the agent reports a problem: no device",
    "NK1503 a problem has ended: attributes: too many",
  ]);
});

it("returns the error of a handler that throws, so that the agent calls again", async () => {
  const failing = () => {
    throw new Error("disk full");
  };
  await expect(send([[badDevice]], failing)).rejects.toThrow(/disk full/);
});
