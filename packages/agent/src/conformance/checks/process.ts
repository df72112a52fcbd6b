import { existsSync } from "node:fs";
import type { PrepareDevicesRequest } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { codeOf, withDeadline } from "@nodekeeper/core/lib";
import type { Bench } from "../bench.ts";
import type { Check } from "../check.ts";
import type { DriverRun } from "../driver-run.ts";
import { RuleBroken, Skipped } from "../finding.ts";
import { watchOf } from "./devices.ts";
import { claimOfOne, prepareAndUndo } from "./preparation.ts";

const END_MS = 10_000;
const POLL_MS = 50;

/** Checks that end the driver's process or start another one. */
export function processChecks(run: DriverRun): readonly Check[] {
  let prepared: PrepareDevicesRequest | undefined;
  return [
    {
      rule: "restart",
      needs: ["get-info"],
      async run(bench) {
        if (!run.canRestart) throw new Skipped("needs --command or --restart-command");
        const { name } = bench.known;
        prepared = await claimBefore(bench);
        bench.devices?.[Symbol.dispose]();
        bench.devices = undefined;
        bench.socket = await run.restart(bench.signal);
        const info = await bench.getInfo();
        if (info.name !== name) throw new RuleBroken(`the name is ${info.name}, and was ${name}`);
        bench.info = info;
        bench.reconnect();
        await bench.notify();
        // The agent does so, too: a driver may need the node's name for its claims.
        bench.devices = watchOf(bench);
        return undefined;
      },
    },
    {
      rule: "restart-claims",
      needs: ["restart", "answer", "unprepare"],
      async run(bench) {
        if (!prepared) throw new Skipped("no claim was prepared before");
        if (bench.isOwn)
          await bench.preparation.restore([prepared]).catch((error) => {
            if (codeOf(error) !== "unsupported") throw error;
          });
        await prepareAndUndo(bench, prepared);
        return undefined;
      },
    },
    {
      rule: "clean-end",
      needs: ["get-info"],
      async run(bench) {
        const { process } = run;
        if (!process) throw new Skipped("needs --command");
        bench.devices?.[Symbol.dispose]();
        await bench.release();
        process.kill("SIGTERM");
        const ended = withDeadline(bench.clock, { ms: END_MS }, bench.signal, () => process.exited);
        const how = await ended.catch(() => {
          process.kill("SIGKILL");
          bench.signal.throwIfAborted();
          throw new RuleBroken(`the process still runs ${END_MS / 1_000} s after SIGTERM`);
        });
        await removed(bench);
        return `exited with ${how}`;
      },
    },
  ];
}

// A driver that prepares nothing is restarted too.
async function claimBefore(bench: Bench): Promise<PrepareDevicesRequest | undefined> {
  try {
    const claim = claimOfOne(bench);
    await bench.preparation.prepare(claim);
    return claim;
  } catch {
    bench.signal.throwIfAborted();
    return undefined;
  }
}

async function removed(bench: Bench): Promise<void> {
  const until = bench.clock.monotonic() + END_MS;
  while (existsSync(bench.socket)) {
    if (bench.clock.monotonic() >= until) throw new RuleBroken(`the socket ${bench.socket} is still there`);
    await bench.clock.sleep(POLL_MS, bench.signal);
  }
}
