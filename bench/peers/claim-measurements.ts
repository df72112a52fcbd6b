import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { AgentProcess } from "../agent-process.ts";
import { CLAIMS, inRounds, register, startClaims } from "../claims.ts";
import { BENCH_NODE } from "../device-messages.ts";
import { percentile } from "../figures.ts";
import { LineProcess } from "./line-process.ts";
import type { Measure } from "./measure.ts";

const QPS = "20";

/** One claim prepared, and 30 at once, by calls of the kubelet over a Unix socket. */
export const measureClaims: Measure = async ({ side, peer, quick }) => {
  const agent = new AgentProcess();
  const { claims, driver, cdi, stop } = await startClaims(agent);
  const registry = join(agent.directory, "r");
  let program: LineProcess | undefined;
  try {
    if (side === "agent") {
      await agent.start({
        "kube-api-qps": QPS,
        "devices-kubelet-plugin-enabled": "true",
        "devices-kubelet-plugin-registry-directory": registry,
        "devices-kubelet-plugin-cdi-directory": cdi,
      });
    } else {
      const data = join(agent.directory, "d");
      for (const directory of [registry, data]) mkdirSync(directory);
      program = new LineProcess([
        peer,
        `-kubeconfig=${agent.kubeconfig}`,
        `-driver=${driver}`,
        `-node=${BENCH_NODE}`,
        `-registry=${registry}`,
        `-data=${data}`,
        `-cdi=${cdi}`,
        `-qps=${QPS}`,
      ]);
      await program.answer();
    }
    const pid = program?.pid ?? agent.pid;
    const kubelet = await register(registry);
    await inRounds(2, { kubelet, pid, claims });
    const atOnce = await inRounds(quick ? 4 : 10, { kubelet, pid, claims });
    const alone = await inRounds(quick ? 30 : 60, { kubelet, pid, claims: claims.slice(0, 1), pauseMs: 200 });
    return {
      "one-claim": percentile(alone.ms, 0.5),
      [`${CLAIMS}-claims`]: percentile(atOnce.ms, 0.5),
      [`${CLAIMS}-claims-cpu`]: atOnce.cpuMs,
    };
  } finally {
    program?.stop();
    await agent.remove();
    stop();
  }
};
