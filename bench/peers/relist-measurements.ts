import { join } from "node:path";
import { systemClock } from "@nodekeeper/core/lib";
import { agentEnvironment, agentOptions } from "../../packages/agent/src/launch.ts";
import { RuntimeProcess } from "../runtime-client.ts";
import { LineProcess } from "./line-process.ts";
import type { Measure, Side } from "./measure.ts";

const CONTAINERS = 3;
const script = join(import.meta.dirname, "lifecycle-process.ts");

function startSide(side: Side, peer: string, socket: string, periodMs: number): LineProcess {
  return side === "agent"
    ? new LineProcess([process.execPath, ...agentOptions, script, socket, String(periodMs)], agentEnvironment)
    : new LineProcess([peer, `-socket=${socket}`, `-period=${periodMs}ms`]);
}

/** CPU milliseconds of a list in which nothing changed. */
export function measureRelist(pods: number): Measure {
  return ({ side, peer, quick }) =>
    withRuntime(pods, async (runtime) => {
      const process = startSide(side, peer, runtime.socket, 20);
      try {
        await process.answer();
        await process.ask("relists 30");
        const { cpuMs } = await process.ask(`relists ${quick || pods > 1_000 ? 40 : 120}`);
        return { [`relist-${pods}`]: cpuMs! };
      } finally {
        process.stop();
      }
    });
}

/** CPU milliseconds of the first list and the statuses of 110 pods and their containers. */
export const measureFirstList: Measure = ({ side, peer }) =>
  withRuntime(110, async (runtime) => {
    const process = startSide(side, peer, runtime.socket, 1_000);
    try {
      return { "first-list": (await process.answer()).cpuMs! };
    } finally {
      process.stop();
    }
  });

/** Milliseconds from the list that shows 100 changed pods of 500 to the last event, at 20 ms a status. */
export const measureChanges: Measure = ({ side, peer }) =>
  withRuntime(500, async (runtime) => {
    const process = startSide(side, peer, runtime.socket, 1_000);
    try {
      const { events } = await process.answer();
      await runtime.ask({ op: "statusDelay", ms: 20 });
      let last = events!;
      // The agent raises its limit of calls at once only with use: the first rounds do not count.
      for (let round = 0; round < 2; round++) {
        await systemClock.sleep(1_000);
        await runtime.ask({ op: "restart", pods: 100 });
        // Each of them dies, is removed and started again.
        last = (await process.ask(`events ${last + 300}`)).events!;
      }
      await runtime.ask({ op: "restart", pods: 100 });
      return { "changed-pods": (await process.ask(`events ${last + 300}`)).ms! };
    } finally {
      process.stop();
    }
  });

async function withRuntime<T>(pods: number, work: (runtime: RuntimeProcess) => Promise<T>): Promise<T> {
  const runtime = await new RuntimeProcess(pods, CONTAINERS, "unimplemented").ready();
  try {
    return await work(runtime);
  } finally {
    runtime.stop();
  }
}
