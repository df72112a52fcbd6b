import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Agent, createAgent } from "../agent.ts";
import { loadConfiguration } from "../config/index.ts";
import {
  createDevApiServer,
  type DevApiServer,
  everyday,
  ScenarioPlayer,
  SimulatedCri,
  SimulatedRuntime,
} from "../devcluster/index.ts";
import {
  createLogger,
  type Logger,
  type LogLevel,
  NodekeeperError,
  type Runnable,
  runInOrder,
  systemClock,
} from "../lib/index.ts";
import { ChildProcess } from "./child-process.ts";
import { LiveLine } from "./live-line.ts";
import { type Output, paint } from "./output.ts";
import { onHangup } from "./run.ts";
import { stopOnSignals } from "./stop-on-signals.ts";
import { packageVersion } from "./version.ts";

export interface DevOptions {
  dataDir?: string;
  apiPort?: string;
  server?: string;
  nodeName: string;
  agent: boolean;
  plugin: boolean;
  /** Whether a container runtime is simulated; else the machine's own is looked for. */
  simulatedRuntime: boolean;
  logLevel: string;
  verbose?: boolean;
}

const STOP_DEADLINE_MS = 4_500;

interface Place {
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

/** `nodekeeper dev`: an API server in memory, the agent, and a sample plugin as a process of its own, until Ctrl-C. */
export async function devCommand(options: DevOptions, output: Output): Promise<void> {
  const signal = stopOnSignals();
  const place = makePlace(options.dataDir);
  const level = checkLevel(options.logLevel);
  const logFile = options.verbose ? undefined : createWriteStream(place.log, { flags: "a", mode: 0o600 });
  const log = createLogger(level, logFile);
  const apiServer = createDevApiServer({
    clock: systemClock,
    logger: log.child({ room: "devcluster" }),
    port: checkPort(options.apiPort),
    ...(options.dataDir ? { dataDir: place.folder } : {}),
  });
  try {
    const { url } = await apiServer.start();
    if (!apiServer.store.list("nodes").some(({ metadata }) => metadata.name === options.nodeName)) {
      apiServer.seedNode(options.nodeName);
    }
    await apiServer.writeKubeconfig(place.kubeconfig);
    const scenarios = options.simulatedRuntime ? await startRuntime(place) : undefined;
    const agent = options.agent ? await makeAgent(options, place, log, (to) => (log.level = to)) : undefined;
    const plugin = options.plugin ? sample("reporter", place, log) : undefined;
    const driver = options.plugin ? sample("driver", place, log) : undefined;
    const parts: Runnable[] = [
      apiServerPart(apiServer),
      ...(scenarios ? [scenarios] : []),
      ...(agent ? [agent] : []),
      ...(plugin ? [plugin] : []),
      ...(driver ? [driver] : []),
    ];
    // Told before anything runs, so that a failure below appears under it.
    const running = runInOrder(parts, { clock: systemClock, log, stopDeadlineMs: STOP_DEADLINE_MS }, signal);
    const address = agent
      ? await Promise.race([agent.listening(), running.then(() => undefined)])
      : undefined;
    if (address || !agent)
      tell({ options, place, url, address, pluginPid: plugin?.pid, driverPid: driver?.pid, output });
    const live =
      options.verbose || !agent ? undefined : new LiveLine(output, systemClock, () => agent.summary());
    live?.start();
    try {
      await running;
    } finally {
      live?.stop();
    }
    output.write("Stopped.\n");
  } finally {
    await apiServer.stop();
    logFile?.end();
    if (place.isTemporary) rmSync(place.folder, { recursive: true, force: true });
  }
}

function makePlace(dataDir: string | undefined): Place {
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

async function makeAgent(
  options: DevOptions,
  place: Place,
  log: Logger,
  setLogLevel: (level: LogLevel) => void,
): Promise<Agent> {
  const sources = { flags: agentFlags(options, place), env: {}, hostname: options.nodeName };
  const { configuration } = await loadConfiguration(sources);
  return createAgent({
    configuration,
    sources,
    version: packageVersion(),
    clock: systemClock,
    log,
    setLogLevel,
    onHangup,
  });
}

function agentFlags(options: DevOptions, place: Place): Record<string, string> {
  return {
    nodeName: options.nodeName,
    kubeconfig: place.kubeconfig,
    stateDir: place.state,
    pluginDirectories: place.plugins,
    apiSocket: place.api,
    ...(options.simulatedRuntime ? { runtimeEndpoint: place.runtime } : {}),
    serverAddress: options.server ?? "127.0.0.1:0",
    logLevel: options.logLevel,
  };
}

/** The simulated runtime serves when this resolves; the part that is given plays what happens on it. */
async function startRuntime(place: Place): Promise<Runnable> {
  const runtime = new SimulatedRuntime({ clock: systemClock });
  const server = new SimulatedCri({ runtime, socket: place.runtime, clock: systemClock });
  await server.start();
  const player = new ScenarioPlayer({ runtime, scenarios: everyday, clock: systemClock, seed: Date.now() });
  return {
    name: "simulated runtime",
    async run(signal) {
      try {
        await player.run(signal);
      } finally {
        await server.stop();
      }
    },
  };
}

function sample(name: "reporter" | "driver", place: Place, log: Logger): ChildProcess {
  const isSource = import.meta.url.endsWith(".ts");
  const script = new URL(
    isSource ? `../../examples/${name}/main.ts` : `./example-${name}.js`,
    import.meta.url,
  );
  const args = ["--socket-dir", place.plugins, "--exit-with-parent"];
  return new ChildProcess({ name: `sample ${name}`, script, args, clock: systemClock, log });
}

function apiServerPart(server: DevApiServer): Runnable {
  return {
    name: "API server",
    async run(signal) {
      await new Promise<void>((done) => signal.addEventListener("abort", () => done(), { once: true }));
      await server.stop();
    },
  };
}

interface Told {
  options: DevOptions;
  place: Place;
  url: string;
  address: string | undefined;
  pluginPid: number | undefined;
  driverPid: number | undefined;
  output: Output;
}

function tell({ options, place, url, address, pluginPid, driverPid, output }: Told): void {
  const bold = (text: string) => paint(output, "bold", text);
  const command = (text: string) => `  ${paint(output, "cyan", text)}`;
  const runFlags = `--node-name ${options.nodeName} --kubeconfig ${place.kubeconfig} --state-dir ${place.state} --plugin-directories ${place.plugins} --api-socket ${place.api}${options.simulatedRuntime ? ` --runtime-endpoint ${place.runtime}` : ""}`;
  const self = process.env.npm_lifecycle_event ? "npx nodekeeper" : "nodekeeper";
  const run = import.meta.url.endsWith(".ts") ? "npm run -s nodekeeper --" : self;
  const lines = [
    bold(`nodekeeper ${packageVersion()}: development cluster (a tool for development and tests)`),
    `  API server     ${url}  (in memory, this machine only)`,
    `  kubeconfig     ${place.kubeconfig}`,
    ...(address ? [`  agent          http://${address}  (/readyz?verbose, /metrics, /api/v1)`] : []),
    `  plugin sockets ${place.plugins}`,
    ...(options.simulatedRuntime
      ? [`  runtime        ${place.runtime}  (simulated: pods without processes)`]
      : []),
    ...(pluginPid ? [`  sample plugin  process ${pluginPid}`] : []),
    ...(driverPid ? [`  sample driver  process ${driverPid}`] : []),
    ...(options.verbose ? [] : [`  log            ${place.log}`]),
    "",
    bold("Try, in another terminal:"),
    command(`kubectl --kubeconfig ${place.kubeconfig} get cnr ${options.nodeName} -o yaml`),
    command(`kubectl --kubeconfig ${place.kubeconfig} get cnr -w`),
    ...(address ? [command(`${run} plugins list --server ${address}`)] : []),
    ...(address ? [command(`${run} devices --server ${address}`)] : []),
    ...(driverPid ? [command(`kubectl --kubeconfig ${place.kubeconfig} get resourceslices`)] : []),
    command(`${run} pods --socket ${place.api}`),
    command(`${run} events --follow --socket ${place.api}`),
    ...(pluginPid
      ? [
          command(`kill -9 ${pluginPid}`) +
            paint(output, "dim", "   # the plugin dies: its content stays for the grace period"),
        ]
      : []),
    ...(options.agent ? [] : [command(`${run} run ${runFlags}`)]),
    "",
    paint(output, "dim", "Ctrl-C stops everything."),
    "",
  ];
  output.write(`${lines.join("\n")}\n`);
}

function checkLevel(level: string): LogLevel {
  const known = ["debug", "info", "warn", "error"] as const;
  const found = known.find((each) => each === level);
  if (!found)
    throw new NodekeeperError("invalid", `--log-level must be one of ${known.join(", ")}; got "${level}"`);
  return found;
}

function checkPort(text: string | undefined): number {
  const port = Number(text ?? 0);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new NodekeeperError("invalid", `--api-port must be 0 to 65535; got "${text}"`);
}
