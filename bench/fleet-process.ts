// Runs agents of several nodes in one process: the whole agent with its composition root, without a container runtime and
// in-tree plugins. Each has a reporter plugin and a driver of two devices, on real sockets.
import { EventEmitter } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import {
  customNodeResource,
  type ReportContent,
  serveDeviceDriver,
  serveReporterPlugin,
  status,
} from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { createAgent } from "../packages/agent/src/agent.ts";
import { keepProcessSmall } from "../packages/agent/src/cli/memory.ts";
import { loadConfiguration } from "../packages/agent/src/config/index.ts";
import type { FleetAnswer, FleetOrder } from "./fleet-agents.ts";

keepProcessSmall();
// Each agent listens to every HTTP/2 stream of the process.
EventEmitter.defaultMaxListeners = 0;

/** One node: plugins that outlive the agent, and the agent. */
class FleetNode {
  readonly #name: string;
  readonly #directory: string;
  readonly #plugins: { stop(): Promise<void> }[] = [];
  #value = 1;
  #changed = Promise.withResolvers<void>();
  #stopAgent: (() => Promise<void>) | undefined;

  constructor(name: string, directory: string) {
    this.#name = name;
    this.#directory = directory;
    const socketDir = join(directory, "p");
    mkdirSync(socketDir, { mode: 0o700, recursive: true });
    const report = (signal: AbortSignal) => this.#report(signal);
    this.#plugins.push(serveReporterPlugin({ name: "reporter", socketDir, report }));
    const devices = async function* () {
      yield [{ devices: [{ name: "device-0" }, { name: "device-1" }] }];
    };
    this.#plugins.push(serveDeviceDriver({ name: "gpu.example.com", socketDir, devices }));
  }

  report(value: number): void {
    this.#value = value;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async start(): Promise<void> {
    const flags = {
      nodeName: this.#name,
      kubeconfig: join(this.#directory, "kubeconfig"),
      stateDir: join(this.#directory, "state"),
      pluginDirectories: join(this.#directory, "p"),
      serverAddress: "127.0.0.1:0",
      apiSocket: "",
      lifecycle: "false",
      reportingInTreePlugins: "-system-reporter-plugin",
      evictionInTreePlugins: "-rss-overuse-eviction-plugin",
      // The rounds are no requests to the API server, and 300 agents share two cores here.
      evictionSyncPeriod: "1m",
    };
    const sources = { flags, env: {}, hostname: this.#name };
    const { configuration } = await loadConfiguration(sources);
    const log = createLogger("error", { write: (line) => process.stderr.write(`${this.#name} ${line}`) });
    const controller = new AbortController();
    const agent = await createAgent({
      ...{ configuration, sources, version: "0.0.0-bench", clock: systemClock, log },
      setLogLevel: () => {},
      onHangup: () => () => {},
    });
    const running = agent.run(controller.signal);
    this.#stopAgent = async () => {
      controller.abort(stopped("restart"));
      await running;
    };
    const address = await agent.listening();
    await until(`the agent of ${this.#name} is ready`, () => isReady(address));
  }

  async stop(): Promise<void> {
    await this.#stopAgent?.();
    this.#stopAgent = undefined;
  }

  async end(): Promise<void> {
    await this.stop();
    await Promise.all(this.#plugins.map((plugin) => plugin.stop()));
  }

  async *#report(signal: AbortSignal): AsyncGenerator<ReportContent[]> {
    const aborted = new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => resolve(), { once: true }),
    );
    while (!signal.aborted) {
      const next = this.#changed.promise;
      yield [
        customNodeResource(status("resources", { capacity: { "example.com/value": String(this.#value) } })),
      ];
      await Promise.race([next, aborted]);
    }
  }
}

async function isReady(address: string): Promise<boolean> {
  return await fetch(`http://${address}/readyz`).then(
    (response) => response.ok,
    () => false,
  );
}

const fleet = new Map<string, FleetNode>();

async function obey(order: FleetOrder): Promise<void> {
  if (order.kind === "add") fleet.set(order.node, new FleetNode(order.node, order.directory));
  const node = fleet.get(order.node)!;
  if (order.kind === "start") await node.start();
  if (order.kind === "stop") await node.stop();
  if (order.kind === "end") await node.end();
  if (order.kind === "report") node.report(order.value);
}

process.on("message", async (order: FleetOrder & { id: number }) => {
  const answer: FleetAnswer = { id: order.id };
  try {
    await obey(order);
  } catch (error) {
    answer.error = String(error);
  }
  process.send?.(answer);
});
