import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { retryPolicies, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { AgentProcess } from "../../bench/agent-process.ts";
import { kubeconfigFor } from "../../packages/testing/src/apiserver/kubeconfig.ts";
import type { Attack, Target } from "./attack.ts";
import { LineProcess } from "./line-process.ts";

/** What an attack did to the agent. */
export interface Outcome {
  /** The longest time until /livez was answered, milliseconds. */
  livezMs: number;
  /** The most CPU time that the main thread used in one turn of the event loop, milliseconds. */
  turnMs: number;
  /** Resident memory, MB: before the attack, at its highest, and `RECOVERY_MS` after its end at the latest. */
  rssMb: number;
  peakMb: number;
  afterMb: number;
}

export interface MeasureOptions {
  attackMs: number;
  /** Ends the wait for memory that comes back early: as soon as so little is resident, MB. Default: as before the attack. */
  enoughMb?: number | undefined;
}

/** How long memory may take to come back after an attack. */
export const RECOVERY_MS = 10_000;
// Its start is over: plugins, first lists, code that is compiled.
const SETTLE_MS = 2_000;

/** Starts an agent in a process of its own, attacks it, and measures. */
export async function measure(attack: Attack, options: MeasureOptions): Promise<Outcome> {
  const server = createDevApiServer({ clock: systemClock, log: silentLogger, checkFields: false });
  const agent = new AgentProcess();
  try {
    await server.start();
    server.seedNode("bench");
    await using attacker = new LineProcess(script("attacker.ts"), [attack.name, server.url]);
    writeFileSync(agent.kubeconfig, kubeconfigFor(await attacker.line(), undefined), { mode: 0o600 });
    return await measureAgent(agent, attack, attacker, options);
  } finally {
    await agent.remove();
    await server.stop();
  }
}

async function measureAgent(
  agent: AgentProcess,
  attack: Attack,
  attacker: LineProcess,
  { attackMs, ...options }: MeasureOptions,
): Promise<Outcome> {
  const meterFile = join(agent.directory, "turn");
  const meter = join(import.meta.dirname, "..", "..", "bench", "turn-meter.ts");
  // A hostile API server may keep it from being ready.
  const path = attack.server?.fromStart ? "/livez" : "/readyz";
  await agent.start({}, { nodeArgs: ["--import", meter], env: { TURN_METER_FILE: meterFile }, path });
  await using probe = new LineProcess(script("livez-probe.ts"), [String(agent.port)]);
  await sleep(SETTLE_MS);
  const rssMb = agent.rssMb();
  // An attack from the start on is measured with the start.
  if (!attack.server?.fromStart) {
    agent.resetPeak();
    await longestTurn(agent, meterFile);
    await answered(probe);
  }
  const target: Target = { pluginDir: agent.plugins, port: agent.port };
  attacker.say(JSON.stringify(target));
  // A watch that was ended is opened again after a delay.
  await sleep(attack.server ? attackMs + retryPolicies.apiWatch.baseMs : attackMs);
  const [livezMs, turnMs] = [Number(await answered(probe)), await longestTurn(agent, meterFile)];
  await attacker[Symbol.asyncDispose]();
  const { enoughMb = rssMb } = options;
  const endedAt = performance.now();
  while (performance.now() - endedAt < RECOVERY_MS && agent.rssMb() > enoughMb) await sleep(100);
  return { livezMs, turnMs, rssMb, peakMb: agent.peakMb(), afterMb: agent.rssMb() };
}

async function answered(probe: LineProcess): Promise<string> {
  const line = probe.line();
  probe.say("");
  return await line;
}

async function longestTurn(agent: AgentProcess, file: string): Promise<number> {
  rmSync(file, { force: true });
  agent.signal("SIGUSR2");
  while (!existsSync(file)) await sleep(20);
  return Number(readFileSync(file, "utf8"));
}

function script(name: string): string {
  return join(import.meta.dirname, name);
}
