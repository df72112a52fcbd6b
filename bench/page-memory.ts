import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { AgentProcess, agentScript } from "./agent-process.ts";
import { type Figure, percentile } from "./figures.ts";

const LOADS = 100;
const SETTLED_MS = 8_000;
// Freed pages are returned to the system by threads of V8, after the collection.
const COLLECTED_MS = 1_500;
const collector = fileURLToPath(new URL("./collect-on-signal.ts", import.meta.url));

/** Anonymous memory of one agent in MiB, after garbage collection except for `uncollected`. */
interface Sample {
  idle: number;
  /** After as many other answers as the page's loads are. */
  answered: number;
  /** After 100 loads of all the page's files. */
  loaded: number;
  /** After 100 more. */
  loadedAgain: number;
  /** After the first 100, before its garbage is collected. */
  uncollected: number;
}

/**
 * Measures how much agent memory the page's files cost: starts agents with and without the files in turns, and requests
 * the same addresses from both. Needs the built agent.
 */
export async function benchPageMemory(quick: boolean): Promise<Figure[]> {
  const built = dirname(agentScript());
  if (!existsSync(join(built, "page"))) throw new Error("the built agent is missing: npm run build");
  const names = readdirSync(join(built, "page"));
  const directory = mkdtempSync(join(tmpdir(), "nkbench-"));
  // Both are copies, so that nothing but the page's files differs.
  const [withPage, without] = [join(directory, "with"), join(directory, "without")];
  cpSync(built, withPage, { recursive: true });
  cpSync(built, without, { recursive: true, filter: (path) => path !== join(built, "page") });
  const served: Sample[] = [];
  const unserved: Sample[] = [];
  try {
    for (let turn = 0; turn < (quick ? 4 : 9); turn++) {
      served.push(await sampleOf(join(withPage, "nodekeeper.js"), names, 200));
      unserved.push(await sampleOf(join(without, "nodekeeper.js"), names, 404));
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
  if (process.env.DEBUGMEM) console.error({ served, unserved });
  const compared = (what: string, of: (sample: Sample) => number, budget?: number): Figure[] => {
    const [mine, others] = [served.map(of), unserved.map(of)];
    const value = percentile(mine, 0.5) - percentile(others, 0.5);
    return [
      { name: `${what}, with the page, median`, value: percentile(mine, 0.5), unit: "MB" },
      { name: `${what}, without it, median`, value: percentile(others, 0.5), unit: "MB" },
      { name: `${what}, spread of either`, value: Math.max(spread(mine), spread(others)), unit: "MB" },
      { name: `${what}, difference`, value, unit: "MB", ...(budget === undefined ? {} : { budget }) },
    ];
  };
  return [
    ...compared("idle", ({ idle }) => idle, 1),
    ...compared(`after ${LOADS} loads`, ({ loaded }) => loaded, 1),
    ...compared("after as many again", ({ loadedAgain }) => loadedAgain, 1),
    ...compared("grown by loads beyond other answers", ({ loaded, answered }) => loaded - answered, 1),
    ...compared("after loads, garbage not collected", ({ uncollected }) => uncollected),
  ];
}

function spread(values: readonly number[]): number {
  return Math.max(...values) - Math.min(...values);
}

/** @param status of the answers to requests for the page's files */
async function sampleOf(script: string, names: readonly string[], status: number): Promise<Sample> {
  const server = createDevApiServer({ clock: systemClock, log: silentLogger, checkFields: false });
  await server.start();
  server.seedNode("bench");
  const agent = new AgentProcess(script);
  await server.writeKubeconfig(agent.kubeconfig);
  try {
    await agent.start({}, { nodeArgs: ["--expose-gc", "--import", collector] });
    await systemClock.sleep(SETTLED_MS);
    const collected = async () => {
      // The second collects what finalizers of the first have freed.
      for (let time = 0; time < 2; time++) {
        agent.signal("SIGUSR2");
        await systemClock.sleep(COLLECTED_MS);
      }
      return agent.anonymousMb();
    };
    const origin = `http://127.0.0.1:${agent.port}`;
    const load = () =>
      ask(
        names.map((name) => `${origin}/page/${name}`),
        status,
      );
    const idle = await collected();
    await ask(
      names.map(() => `${origin}/api/v1/version`),
      200,
    );
    const answered = await collected();
    await load();
    const uncollected = agent.anonymousMb();
    const loaded = await collected();
    await load();
    return { idle, answered, loaded, loadedAgain: await collected(), uncollected };
  } finally {
    await agent.remove();
    await server.stop();
  }
}

// All at once, as a browser asks for a page's files, again and again.
async function ask(addresses: readonly string[], expected: number): Promise<void> {
  const askOne = async (address: string) => {
    const answer = await fetch(address);
    await answer.arrayBuffer();
    if (answer.status !== expected) throw new Error(`${address}: ${answer.status}, not ${expected}`);
  };
  for (let time = 0; time < LOADS; time++) await Promise.all(addresses.map(askOne));
}
