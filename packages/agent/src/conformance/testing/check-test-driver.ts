import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FakeClock } from "@nodekeeper/core/lib";
import type { ConformanceOptions } from "../bench.ts";
import type { Finding } from "../finding.ts";
import { checkDriver } from "../suite.ts";
import { DriverProxy } from "./driver-proxy.ts";
import { type DriverParts, serveTestDriver, untilCancelled } from "./test-driver.ts";

/** What tests of broken drivers use. */
export interface Trouble {
  /** Makes time pass quickly until the next finding, because the driver does not answer. */
  hang(signal: AbortSignal): Promise<never>;
  crash(): void;
  /** Ends the process, and starts it again at once. */
  crashAndStart(): void;
  clock: FakeClock;
}

/**
 * Serves a driver and runs the suite. Unless the driver hangs, the clock is slower than real time, so that no
 * deadline is missed on a busy machine.
 */
export async function checkTestDriver(
  change: (trouble: Trouble) => Partial<DriverParts>,
  options: Partial<ConformanceOptions> = {},
): Promise<Finding[]> {
  const directory = mkdtempSync(join(tmpdir(), "nkc-"));
  const place = join(directory, "driver.sock");
  const behind = join(directory, ".server.sock");
  const proxy = new DriverProxy(place, behind);
  const clock = new FakeClock();
  let isHanging = false;
  const server = await serveTestDriver(
    behind,
    change({
      hang(signal) {
        isHanging = true;
        return untilCancelled(signal);
      },
      crash() {
        proxy.close();
        server.forceShutdown();
      },
      crashAndStart: () => proxy.cut(),
      clock,
    }),
  );
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
    onLeftPrepared: () => {},
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
  const findings: Finding[] = [];
  try {
    for await (const finding of checkDriver(all, new AbortController().signal)) {
      isHanging = false;
      findings.push(finding);
    }
  } finally {
    isOver = true;
    await steps;
    proxy.close();
    server.forceShutdown();
    rmSync(directory, { recursive: true, force: true });
  }
  return findings;
}

/** The rules with a result. */
export const rulesOf = (findings: readonly Finding[], wanted: Finding["result"]) =>
  findings.filter(({ result }) => result === wanted).map(({ rule }) => rule);
