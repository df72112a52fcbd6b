import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentEnvironment, agentOptions } from "../../packages/agent/src/launch.ts";
import { benchPods } from "../eviction-pods.ts";
import { LineProcess } from "./line-process.ts";
import type { Measure } from "./measure.ts";

const PODS = 1_000;
const PLUGINS = 32;
/** Calls with pods in a round, at least: for pods to evict, and for the first of them because of the pressure. */
const CALLS = 2 * PLUGINS;
const script = join(import.meta.dirname, "eviction-process.ts");

/** A round of 1,000 pods and 32 plugins, which are all under hard pressure and name no pod. */
export const measureEviction: Measure = async ({ side, peer, plugins: program, quick }) => {
  const directory = mkdtempSync(join(tmpdir(), "nkb-"));
  const podsFile = join(directory, "pods.json");
  writeFileSync(podsFile, JSON.stringify(benchPods(PODS, "bench")));
  const plugins = new LineProcess([program, `-directory=${directory}`, `-count=${PLUGINS}`]);
  let child: LineProcess | undefined;
  try {
    await plugins.answer();
    child =
      side === "agent"
        ? new LineProcess(
            [process.execPath, ...agentOptions, script, directory, String(PODS), String(PLUGINS)],
            agentEnvironment,
          )
        : new LineProcess([peer, `-pods=${podsFile}`, `-sockets=${directory}`, `-plugins=${PLUGINS}`]);
    const { pods } = await child.answer();
    if (pods !== PODS) throw new Error(`${pods} of ${PODS} pods are active`);
    await child.ask("rounds 3");
    await plugins.ask("calls");
    const rounds = quick ? 3 : 10;
    const { ms, cpuMs } = await child.ask(`rounds ${rounds}`);
    const { calls = 0 } = await plugins.ask("calls");
    // A side whose calls fail has a fast round.
    if (calls < rounds * CALLS)
      throw new Error(`the plugins received ${calls} calls with pods, of ${rounds * CALLS}`);
    return { "eviction-round": ms!, "eviction-round-cpu": cpuMs! };
  } finally {
    child?.stop();
    plugins.stop();
    rmSync(directory, { recursive: true });
  }
};
