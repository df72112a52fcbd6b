import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Options of `nodekeeper dev` as parsed from the command line. */
export interface DevOptions {
  dataDir?: string;
  apiPort?: string;
  server?: string;
  nodeName: string;
  agent: boolean;
  plugin: boolean;
  /** Delay from the first pods that the sample eviction plugin receives to its first met threshold: "5s". */
  firstPressure: string;
  /** Whether to simulate a container runtime. If false, the machine's own runtime is discovered. */
  simulatedRuntime: boolean;
  logLevel: string;
  verbose?: boolean;
}

/** Files and directories of a development cluster. */
export interface DevPaths {
  directory: string;
  plugins: string;
  state: string;
  kubeconfig: string;
  /** Socket of the simulated runtime. */
  runtime: string;
  /** Plugin registration directory of the simulated kubelet. */
  registry: string;
  /** PodResources socket of the simulated kubelet. */
  podResources: string;
  /** CDI files of prepared claims. */
  cdi: string;
  /** Socket of the agent's local API. */
  api: string;
  log: string;
  /** Whether the directory is removed when the command ends. */
  isTemporary: boolean;
}

/** Creates `dataDir`, or a temporary directory if it is undefined, and returns the paths in it. */
export function createDevPaths(dataDir: string | undefined): DevPaths {
  const directory = dataDir ? resolve(dataDir) : mkdtempSync(join(tmpdir(), "nodekeeper-"));
  const plugins = join(directory, "plugins_registry");
  const [registry, cdi] = [join(directory, "kubelet_plugins"), join(directory, "cdi")];
  for (const each of [plugins, registry, cdi]) mkdirSync(each, { recursive: true, mode: 0o700 });
  return {
    directory,
    plugins,
    state: join(directory, "state"),
    kubeconfig: join(directory, "kubeconfig"),
    runtime: join(directory, "runtime.sock"),
    registry,
    podResources: join(directory, "podresources.sock"),
    cdi,
    api: join(directory, "nodekeeper.sock"),
    log: join(directory, "nodekeeper.log"),
    isTemporary: dataDir === undefined,
  };
}
