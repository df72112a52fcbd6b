import { accessSync, constants } from "node:fs";
import { basename } from "node:path";

/**
 * Environment variables of the agent's process. glibc reads them before any JavaScript runs; see mallopt(3).
 *
 * MALLOC_TRIM_THRESHOLD_: setting it disables glibc's dynamic thresholds. Otherwise freeing the first large buffer
 * raises them, up to 64 MiB, and the memory of a burst of large reports is never returned.
 *
 * MALLOC_MMAP_THRESHOLD_: larger buffers, such as the 64 KiB of each of Node's reads from a socket, get a mapping of their
 * own, which is unmapped when they are freed. In the heap, they leave fragments that are never returned. Measured with
 * 110 pods: 38 MB of anonymous memory without, 34 MB with; after lists of 60 MB from a hostile API server: 295 MB
 * resident without, 106 MB with.
 *
 * MALLOC_ARENA_MAX: one arena for all threads, since all but one are mostly idle. Measured with 110 pods: 90 MB
 * resident without, 87 MB with.
 */
export const agentEnvironment: Readonly<Record<string, string>> = {
  MALLOC_TRIM_THRESHOLD_: "131072",
  MALLOC_MMAP_THRESHOLD_: "32768",
  MALLOC_ARENA_MAX: "1",
};

/**
 * Options of V8 that only have an effect on Node's command line. Those that can change later are in `cli/memory.ts`.
 * Only one, because the first line of the image's script passes all that follows the program's name as one argument.
 *
 * --no-concurrent-sweeping: freed receive buffers count as used until V8's concurrent sweeper has run, so that lists of
 * the runtime cause one garbage collection after another. CPU time of an unchanged relist of 500 pods: 31 ms without,
 * 15 ms with.
 */
export const agentOptions: readonly string[] = ["--no-concurrent-sweeping"];

// glibc removes malloc's variables in secure-execution mode (setuid, file capabilities). Without this marker, such a
// process would restart forever.
const STARTED_OVER = "NODEKEEPER_STARTED_OVER";

/** The members of `process` that `startOver` uses. */
export interface LaunchedProcess {
  readonly platform: string;
  readonly execPath: string;
  /** Node's options. */
  readonly execArgv: readonly string[];
  /**
   * Node, the script, and its arguments. For a single executable: the executable, the name it was invoked by, and its
   * arguments.
   */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Undefined on Windows. */
  readonly execve?: (file: string, args: readonly string[], env: Record<string, string>) => void;
}

/**
 * Replaces the process with the same program under `agentEnvironment` and `agentOptions`. PID, parent and standard
 * streams are preserved. Does nothing if all variables are set, on systems other than Linux, or if Node's executable cannot
 * be run. Variables that are already set keep their value; setting all of them in the unit or image avoids the restart,
 * also without the options, which save CPU time only.
 * @param isSingle whether the program is a single executable, whose arguments do not include a script or options of
 * Node; it contains `agentOptions`
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
  const missingOptions = isSingle ? [] : agentOptions.filter((option) => !execArgv.includes(option));
  const defined = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  execve.call(
    launched,
    execPath,
    isSingle ? [execPath, ...argv.slice(2)] : [execPath, ...execArgv, ...missingOptions, ...argv.slice(1)],
    Object.fromEntries([...defined, ...missing, [STARTED_OVER, "1"]]),
  );
}

/**
 * Returns whether the process was invoked as `kubectl nodekeeper`: a single executable whose name, or that of a link to
 * it, is the one that kubectl looks up. Always false for a Node script; that plugin has a separate program.
 * @param argv0 name or path by which the process was invoked
 */
export function isKubectlPlugin(argv0: string, isSingle: boolean): boolean {
  return isSingle && basename(argv0) === "kubectl-nodekeeper";
}
