import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import type { AgentLife, History } from "./history.ts";
import type { Settings } from "./settings.ts";
import { SupervisedAgent } from "./supervised-agent.ts";

export const OTHER_NODE = "worker-2";
const OTHER_ADDRESS = "127.0.0.1:10291";

/** Another node of the cluster, with an agent that does nothing but to publish devices. */
export class OtherNode {
  readonly agent: SupervisedAgent;
  readonly socketDirectory: string;
  /** Of its agent, oldest first. */
  readonly lives: AgentLife[] = [];
  /** Lines of its agent's log, of all lives. */
  readonly log: string[] = [];

  /**
   * @param devices its section of the configuration
   * @param settings those of the operator, of which its agent needs none
   * @param failures receives why its agent ended by itself
   */
  constructor(
    machine: Machine,
    history: History,
    {
      kubeconfig,
      devices,
      settings,
      failures,
    }: { kubeconfig: string; devices: object; settings: Settings; failures: string[] },
  ) {
    const root = join(machine.root, OTHER_NODE);
    this.socketDirectory = join(root, "plugins");
    mkdirSync(this.socketDirectory, { recursive: true, mode: 0o700 });
    mkdirSync(join(root, "host"));
    const file = join(root, "agent.yaml");
    const configuration = {
      apiVersion: "nodekeeper.dev/v1alpha1",
      kind: "AgentConfiguration",
      nodeName: OTHER_NODE,
      stateDir: join(root, "state"),
      hostRoot: join(root, "host"),
      log: { level: "info" },
      kube: { kubeconfig },
      server: { address: OTHER_ADDRESS },
      api: { socket: "" },
      lifecycle: { enabled: false },
      plugins: { directories: [this.socketDirectory], endpointDirectories: [] },
      reporting: { inTreePlugins: [] },
      eviction: { enabled: false },
      devices,
    };
    writeFileSync(file, JSON.stringify(configuration));
    this.agent = new SupervisedAgent(`agent of ${OTHER_NODE}`, {
      machine,
      history,
      nodeName: OTHER_NODE,
      lives: this.lives,
      censusOf: () => undefined,
      operator: { written: settings, taken: () => {} },
      file,
      failures,
      log: this.log,
      hasOther: () => false,
    });
  }

  /** Returns whether a process is or was its agent. */
  has(process: Process): boolean {
    return this.lives.some((life) => life.process === process);
  }
}
