import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";

/** `nodekeeper run` in a separate process. */
export interface AgentProcess {
  /**
   * Resolves with "host:port" of the status server once it listens. Rejects with `unavailable` if the process exits
   * before; the message ends with the last log lines.
   */
  readonly listening: Promise<string>;
  /** Resolves with the exit code or signal once the process exited. */
  readonly exited: Promise<number | string>;
  /** The last 10,000 lines of its log. */
  readonly log: readonly string[];
  /** Sends SIGTERM, and SIGKILL after 10 s. Resolves once the process exited. Idempotent. */
  stop(): Promise<void>;
}

const KILL_AFTER_MS = 10_000;
const MOST_LINES = 10_000;
const SHOWN_LINES = 10;

/**
 * Starts the agent. It is killed when this process exits, unless this process is killed itself.
 * @param script path of the program that implements the command `run`
 * @param args arguments of `run`
 */
export function startAgentProcess(script: string, args: readonly string[], clock: Clock): AgentProcess {
  const child = spawn(process.execPath, [script, "run", ...args], {
    env: environment(),
    stdio: ["ignore", "ignore", "pipe"],
  });
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  const log: string[] = [];
  const { promise: listening, resolve, reject } = Promise.withResolvers<string>();
  const { promise: exited, resolve: exit } = Promise.withResolvers<number | string>();
  listening.catch(() => {});
  createInterface({ input: child.stderr }).on("line", (line) => {
    log.push(line);
    if (log.length > MOST_LINES) log.shift();
    const address = addressIn(line);
    if (address) resolve(address);
  });
  const end = (how: number | string) => {
    process.off("exit", kill);
    const lastLines = log.slice(-SHOWN_LINES).map((line) => `\n  ${line}`);
    reject(
      new NodekeeperError("unavailable", `the agent exited (${how}) before it served${lastLines.join("")}`),
    );
    exit(how);
  };
  child.once("error", (error) => end(error.message));
  child.once("close", (code, signal) => end(code ?? signal ?? "unknown"));
  return {
    listening,
    exited,
    log,
    async stop() {
      child.kill("SIGTERM");
      const timer = clock.after(KILL_AFTER_MS, kill);
      await exited;
      timer.cancel();
    },
  };
}

// Omits the agent's variables of the calling shell, which would override the configuration file.
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("NODEKEEPER_")));
}

function addressIn(line: string): string | undefined {
  if (!line.includes("status server is listening")) return undefined;
  return (JSON.parse(line) as { address?: string }).address;
}
