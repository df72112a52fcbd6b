import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "@nodekeeper/core/lib";
import { cpuSecondsOf, residentMbOf } from "./process-usage.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** What runs: the bundle, as on a node. */
export function agentScript(): string {
  const bundle = join(root, "dist/nodekeeper/nodekeeper.js");
  if (existsSync(bundle)) return bundle;
  console.error(
    "dist/nodekeeper/nodekeeper.js is missing (npm run build): measuring the sources, which start slower",
  );
  return join(root, "packages/agent/src/main.ts");
}

/** The agent as a process of its own, on a directory of its own. */
export class AgentProcess {
  readonly directory = mkdtempSync(join(tmpdir(), "nkbench-"));
  readonly plugins = join(this.directory, "p");
  readonly kubeconfig = join(this.directory, "kubeconfig");
  readonly #script: string;
  #child: ChildProcess | undefined;
  #port = 0;

  /** @param script of the agent */
  constructor(script = agentScript()) {
    this.#script = script;
    mkdirSync(this.plugins, { mode: 0o700 });
  }

  /** Of its status server. */
  get port(): number {
    return this.#port;
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  /**
   * Starts it; returns the milliseconds until it answers ok to /readyz, or another path.
   * @param more flags of the agent
   * @param process arguments of Node, additions to the environment, and the path
   */
  async start(
    more: Readonly<Record<string, string>> = {},
    {
      nodeArgs = [],
      env = {},
      path = "/readyz",
    }: { nodeArgs?: readonly string[]; env?: Readonly<Record<string, string>>; path?: string } = {},
  ): Promise<number> {
    this.#port = await freePort();
    const startedAt = performance.now();
    const flags = {
      "node-name": "bench",
      kubeconfig: this.kubeconfig,
      "state-dir": join(this.directory, "state"),
      "plugin-directories": this.plugins,
      "server-address": `127.0.0.1:${this.#port}`,
      "kube-api-qps": "100",
      "api-socket": join(this.directory, "agent.sock"),
      lifecycle: "false",
      ...more,
    };
    const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const log = openSync(join(this.directory, "agent.log"), "a");
    this.#child = spawn(process.execPath, [...nodeArgs, this.#script, "run", ...args], {
      stdio: ["ignore", "ignore", log],
      env: { ...process.env, ...env },
    });
    while (!(await this.#isOk(path))) {
      if (performance.now() - startedAt > 120_000)
        throw new Error(`agent not ready: ${readFileSync(join(this.directory, "agent.log"))}`);
      // Each question costs the agent half a millisecond of its start.
      await systemClock.sleep(10);
    }
    return performance.now() - startedAt;
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (!child) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
    this.#child = undefined;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Returns the resident memory in MiB. */
  rssMb(): number {
    return residentMbOf(this.pid, "VmRSS");
  }

  /** Returns the peak resident memory in MiB since the start or the last `resetPeak`. */
  peakMb(): number {
    return residentMbOf(this.pid, "VmHWM");
  }

  /** Resets the peak of resident memory to the current value: proc_pid_clear_refs(5). */
  resetPeak(): void {
    writeFileSync(`/proc/${this.#child?.pid}/clear_refs`, "5");
  }

  /** Returns the anonymous resident memory in MiB: what the process allocated. */
  anonymousMb(): number {
    return residentMbOf(this.pid, "RssAnon");
  }

  /** CPU time used so far, seconds. */
  cpuSeconds(): number {
    return cpuSecondsOf(this.pid);
  }

  #isOk(path: string): Promise<boolean> {
    return new Promise((resolve) => {
      const call = request({ port: this.#port, path, timeout: 1_000 }, (answer) => {
        answer.resume();
        resolve(answer.statusCode === 200);
      });
      call.on("error", () => resolve(false));
      call.end();
    });
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
