import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { join } from "node:path";
import { settings } from "@nodekeeper/api/settings";

const root = join(import.meta.dirname, "..", "..");

/** A command in a process of its own. */
export interface ScriptProcess {
  pid: number;
  /** What it wrote so far, both streams together. */
  output(): string;
  /** What it wrote so far to standard output. */
  stdout(): string;
  /** Resolves with the exit status, or the signal's name. */
  ended: Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
}

/**
 * Starts a Node script of this repository.
 * @param script path from the repository's root
 */
export function startScript(
  script: string,
  args: readonly string[],
  env: Record<string, string> = {},
): ScriptProcess {
  return start(process.execPath, [join(root, script), ...args], { env });
}

/**
 * Starts a command as a shell does: from the repository's root, in a process group of its own, whose id is `pid`. `kill`
 * signals all of the group, as Ctrl-C does.
 */
export function startInGroup(
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
): ScriptProcess {
  const started = start(command, args, { env, detached: true });
  const kill = (signal: NodeJS.Signals) => {
    if (isAlive(-started.pid)) process.kill(-started.pid, signal);
  };
  return { ...started, kill };
}

function start(command: string, args: readonly string[], { env, ...options }: SpawnOptions): ScriptProcess {
  const child: ChildProcess = spawn(command, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...options,
  });
  let output = "";
  let stdout = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (bytes) => (output += bytes));
  child.stdout?.on("data", (bytes) => (stdout += bytes));
  const ended = new Promise<number | string>((resolve) =>
    child.once("close", (code, signal) => resolve(code ?? signal ?? "unknown")),
  );
  return {
    pid: child.pid!,
    output: () => output,
    stdout: () => stdout,
    ended,
    kill: (signal) => child.kill(signal),
  };
}

/** Settings by `Setting.optionKey` as arguments of the command line. */
export function argumentsOf(flags: Readonly<Record<string, string>>): string[] {
  return Object.entries(flags).map(([key, value]) => {
    const setting = settings.find(({ optionKey }) => optionKey === key);
    if (!setting?.flagName) throw new Error(`no setting has the flag ${key}`);
    return `--${setting.flagName}=${value}`;
  });
}

/** Returns whether a process with this PID exists, zombies included. A negative PID stands for a process group. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
