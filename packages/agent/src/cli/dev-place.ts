import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** As the command line gives them. */
export interface DevOptions {
  dataDir?: string;
  apiPort?: string;
  server?: string;
  nodeName: string;
  agent: boolean;
  plugin: boolean;
  /** When the sample eviction plugin has the first pod go: "5s" after it has seen pods. */
  firstPressure: string;
  /** Whether a container runtime is simulated; else the machine's own is looked for. */
  simulatedRuntime: boolean;
  logLevel: string;
  verbose?: boolean;
}

/** Where the parts of a development cluster have their files. */
export interface Place {
  folder: string;
  plugins: string;
  state: string;
  kubeconfig: string;
  /** Socket of the simulated runtime. */
  runtime: string;
  /** Socket of the agent's API. */
  api: string;
  log: string;
  /** Whether the folder goes when the command ends. */
  isTemporary: boolean;
}

/** Makes the folder: the given one, else a temporary one. */
export function makePlace(dataDir: string | undefined): Place {
  const folder = dataDir ? resolve(dataDir) : mkdtempSync(join(tmpdir(), "nodekeeper-"));
  const plugins = join(folder, "plugins_registry");
  mkdirSync(plugins, { recursive: true, mode: 0o700 });
  return {
    folder,
    plugins,
    state: join(folder, "state"),
    kubeconfig: join(folder, "kubeconfig"),
    runtime: join(folder, "runtime.sock"),
    api: join(folder, "nodekeeper.sock"),
    log: join(folder, "nodekeeper.log"),
    isTemporary: dataDir === undefined,
  };
}
