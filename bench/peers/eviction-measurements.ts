import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentEnvironment, agentOptions } from "../../packages/agent/src/launch.ts";
import { benchPods } from "../eviction-pods.ts";
import { LineProcess } from "./line-process.ts";
import type { Measure } from "./measure.ts";

const PODS = 1_000;
const PLUGINS = 32;
const script = join(import.meta.dirname, "eviction-process.ts");
const pluginsScript = join(import.meta.dirname, "../eviction-plugins-process.ts");

/** A round of 1,000 pods and 32 plugins, which are all under hard pressure and name no pod. */
export const measureEviction: Measure = async ({ side, peer, quick }) => {
  const directory = mkdtempSync(join(tmpdir(), "nkb-"));
  const podsFile = join(directory, "pods.json");
  writeFileSync(podsFile, JSON.stringify(benchPods(PODS, "bench")));
  const plugins = spawn(process.execPath, [pluginsScript, directory, String(PLUGINS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(plugins.stdout, "data");
  const child =
    side === "agent"
      ? new LineProcess(
          [process.execPath, ...agentOptions, script, directory, String(PODS), String(PLUGINS)],
          agentEnvironment,
        )
      : new LineProcess([peer, `-pods=${podsFile}`, `-sockets=${directory}`, `-plugins=${PLUGINS}`]);
  try {
    const { pods } = await child.answer();
    if (pods !== PODS) throw new Error(`${pods} of ${PODS} pods are active`);
    await child.ask("rounds 5");
    const { ms, cpuMs } = await child.ask(`rounds ${quick ? 5 : 20}`);
    return { "eviction-round": ms!, "eviction-round-cpu": cpuMs! };
  } finally {
    child.stop();
    plugins.kill("SIGKILL");
    rmSync(directory, { recursive: true });
  }
};
