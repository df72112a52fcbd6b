import { accessSync, constants } from "node:fs";
import { basename } from "node:path";

/**
 * Environment of an agent's process. glibc reads these before the first line of JavaScript runs: mallopt(3).
 *
 * MALLOC_TRIM_THRESHOLD_: where it is set, the thresholds are fixed. Without it the first large buffer that is freed
 * raises them, up to 64 MiB, and the memory that a burst of large reports took stays with the process.
 *
 * MALLOC_ARENA_MAX: one heap for all threads, of which all but one do little. Measured beside 110 pods: 90 MB resident
 * without, 87 MB with.
 */
export const agentEnvironment: Readonly<Record<string, string>> = {
  MALLOC_TRIM_THRESHOLD_: "131072",
  MALLOC_ARENA_MAX: "1",
};

// glibc removes malloc's variables from programs that run with raised capabilities: without a mark of its own such a
// process would start over forever.
const STARTED_OVER = "NODEKEEPER_STARTED_OVER";

/** A process as far as `startOver` looks at it; Node's own is one. */
export interface LaunchedProcess {
  readonly platform: string;
  readonly execPath: string;
  /** Node's options. */
  readonly execArgv: readonly string[];
  /** Node, the script, its arguments; in a single executable that itself, the name it was called by, its arguments. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Absent on Windows. */
  readonly execve?: (file: string, args: readonly string[], env: Record<string, string>) => void;
}

/**
 * Replaces the process by the same program with `agentEnvironment`; its id, parent and standard streams stay. Returns
 * where nothing has to be set, on systems other than Linux, and where Node's executable can't be run again. A variable
 * that is set, to whatever value, is left alone: with all of them set in a unit or an image no time is lost here.
 * @param isSingle whether the program is a single executable, which is not given its own script
 */
export function startOver(launched: LaunchedProcess, isSingle: boolean): void {
  const { platform, execPath, execArgv, argv, env, execve } = launched;
  if (platform !== "linux" || !execve || env[STARTED_OVER] !== undefined) return;
  const missing = Object.entries(agentEnvironment).filter(([name]) => env[name] === undefined);
  if (missing.length === 0) return;
  try {
    accessSync(execPath, constants.X_OK);
  } catch {
    return;
  }
  const defined = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  execve.call(
    launched,
    execPath,
    [execPath, ...execArgv, ...argv.slice(isSingle ? 2 : 1)],
    Object.fromEntries([...defined, ...missing, [STARTED_OVER, "1"]]),
  );
}

/**
 * Whether the process is `kubectl nodekeeper`: a single executable called by the name under which kubectl looks for that
 * plugin, as a link or a copy is. A script of Node is never, it has a program of its own for the plugin.
 * @param argv0 the name or path that the process was called by
 */
export function isKubectlPlugin(argv0: string, isSingle: boolean): boolean {
  return isSingle && basename(argv0) === "kubectl-nodekeeper";
}
