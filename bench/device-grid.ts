import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { serveDeviceDriver } from "@nodekeeper/sdk";
import type { AgentProcess } from "./agent-process.ts";
import { type Figure, percentile } from "./figures.ts";

const DRIVER = "bench.example.com";
const DEVICES = 1_000;
const CHANGES_EVERY_MS = 1_000;

/** What a browser drew of a grid of devices; milliseconds. */
export interface DrawnGrid {
  /** From the start of the navigation to the frame with all cells, in fresh profiles. */
  drawnMs: number[];
  /** Longest task of at least 50 ms in each of these profiles; 0 if there was none. */
  openingMs: number[];
  /** Tasks of 50 ms and more while a device changed each second. */
  changingMs: number[];
  /** CPU time of the page's main thread, a second of that time. */
  changingCpuMs: number;
  /** From a key of movement to the frame that shows the focus on another cell; a frame and more. */
  keysMs: number[];
  /** Tasks of 50 ms and more meanwhile. */
  pressingMs: number[];
  /** CPU time of the page's main thread, a key. */
  keyCpuMs: number;
}

/** A pool of 1,000 devices on the page, of which one changes each second. */
export async function deviceGridFigures(agent: AgentProcess, quick: boolean): Promise<Figure[]> {
  const seconds = quick ? 10 : 30;
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.plugins,
    log: silentLogger,
    async *devices(signal) {
      for (let change = 0; ; change++) {
        yield [{ devices: Array.from({ length: DEVICES }, (_, at) => device(at, at === change % DEVICES)) }];
        await systemClock.sleep(CHANGES_EVERY_MS, signal);
      }
    },
  });
  try {
    const script = fileURLToPath(new URL("./device-grid-browser.ts", import.meta.url));
    const args = [`http://127.0.0.1:${agent.port}`, DRIVER, DEVICES, quick ? 3 : 9, seconds].map(String);
    const { stdout } = await promisify(execFile)(process.execPath, [script, ...args]);
    const drawn: DrawnGrid = JSON.parse(stdout);
    const { drawnMs, openingMs, changingMs, changingCpuMs, keysMs, pressingMs, keyCpuMs } = drawn;
    const grid = `grid of ${DEVICES} devices`;
    return [
      { name: `${grid}: drawn, median`, value: percentile(drawnMs, 0.5), unit: "ms" },
      { name: `${grid}: longest task until then`, value: Math.max(...openingMs), unit: "ms" },
      {
        name: `${grid}: long tasks, a change each second`,
        value: changingMs.length,
        unit: `in ${seconds} s`,
      },
      { name: `${grid}: longest of them`, value: Math.max(0, ...changingMs), unit: "ms" },
      { name: `${grid}: browser's CPU for a change`, value: changingCpuMs, unit: "ms" },
      { name: `${grid}: key to frame, p99`, value: percentile(keysMs, 0.99), unit: "ms" },
      { name: `${grid}: browser's CPU for a key`, value: keyCpuMs, unit: "ms" },
      { name: `${grid}: longest task while keys are pressed`, value: Math.max(0, ...pressingMs), unit: "ms" },
    ];
  } finally {
    await driver.stop();
  }
}

function device(at: number, isTainted: boolean) {
  const taints = isTainted ? [{ key: "bench.example.com/hot", value: "", effect: "NoSchedule" }] : [];
  return { name: `device-${at}`, attributes: { model: { string: "x1" }, slot: { int: BigInt(at) } }, taints };
}
