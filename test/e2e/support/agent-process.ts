import { execFile } from "node:child_process";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Child } from "./child.ts";
import type { ControlPlane } from "./control-plane.ts";
import { freePort } from "./free-port.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { installNodekeeper, serviceAccount, serviceAccountUser } from "./nodekeeper-install.ts";

export interface AgentProcessOptions {
  nodeName: string;
  /** Settings by flag name without dashes in front: { "reporting-plugin-grace-period": "3s" }. */
  flags?: Readonly<Record<string, string>>;
  /** Another port than the API server's: that of a proxy. */
  port?: number;
  /** Another file of trusted authorities than the control plane's. */
  authority?: string;
  /** Whether its token names no node. */
  unboundToken?: boolean;
  /** How long its first token is valid, seconds. */
  tokenLifetime?: number;
  /** Fields of the kubeconfig's user, in place of the service account's token. */
  user?: Readonly<Record<string, string>>;
  /** In front of the command, so that it runs in a node's namespaces. */
  enter?: readonly string[];
}

export interface Health {
  ok: boolean;
  text: string;
}

const main = join(import.meta.dirname, "../../../packages/agent/src/main.ts");
const execute = promisify(execFile);
const HOUR_S = 3_600;

/** `nodekeeper run` as a process of its own, with the rights of deploy/rbac.yaml. */
export class AgentProcess {
  readonly pluginDirectory: string;
  readonly tokenFile: string;
  readonly apiSocket: string;
  readonly child: Child;
  /** As the audit log names the caller. */
  readonly user = serviceAccountUser;
  /** Another instance with the same settings, whose log is a file of its own; the caller starts and stops it. */
  readonly successor: () => Child;
  readonly #address: string;
  readonly #newToken: (lifetime: number) => string;

  private constructor(
    directory: string,
    child: Child,
    address: string,
    newToken: (lifetime: number) => string,
    successor: () => Child,
  ) {
    this.pluginDirectory = join(directory, "plugins");
    this.tokenFile = join(directory, "token");
    this.apiSocket = join(directory, "agent.sock");
    this.child = child;
    this.successor = successor;
    this.#address = address;
    this.#newToken = newToken;
  }

  /** Writes its files and starts it; does not wait for anything. */
  static async start(cluster: ControlPlane, options: AgentProcessOptions): Promise<AgentProcess> {
    const { nodeName, flags = {}, port = cluster.port, authority = cluster.trustFile } = options;
    const directory = join(cluster.directory, `agent-${nodeName}`);
    mkdirSync(join(directory, "plugins"), { recursive: true });
    const tokenFile = join(directory, "token");
    const uid = await installNodekeeper(cluster);
    // As a pod's: bound to its node, which an older server does not know of.
    const node = await cluster.admin.get(`/api/v1/nodes/${nodeName}`).catch(() => undefined);
    const bound = node && !options.unboundToken ? { name: nodeName, uid: node.metadata.uid } : undefined;
    const newToken = (lifetime: number) => cluster.tokens.sign({ ...serviceAccount, uid }, lifetime, bound);
    writeFileSync(tokenFile, newToken(options.tokenLifetime ?? HOUR_S));
    const user = options.user ?? { tokenFile };
    const kubeconfig = writeKubeconfig(join(directory, "kubeconfig"), { port, authority, user });
    const address = `127.0.0.1:${await freePort()}`;
    const settings = {
      "node-name": nodeName,
      kubeconfig,
      "state-dir": join(directory, "state"),
      "plugin-directories": join(directory, "plugins"),
      // A driver's own directory is not the one in which it registers.
      "plugin-endpoint-directories": cluster.directory,
      "server-address": address,
      "api-socket": join(directory, "agent.sock"),
      // Enabled only if the case sets a runtime endpoint: otherwise there is no container runtime.
      lifecycle: String(flags["runtime-endpoint"] !== undefined),
      // No kubelet runs here, and in-tree eviction plugins look at this machine: a case asks for those it is about.
      "reporting-in-tree-plugins": "*,-kubelet-reporter-plugin",
      "eviction-in-tree-plugins": "-rss-overuse-eviction-plugin",
      // No plugin: eviction is live. The case about dry run sets it.
      "eviction-dry-run-plugins": ",",
      "eviction-cooldown": "0s",
      "eviction-limits-per-node": "0",
      "eviction-limits-per-owner": "0",
      "eviction-grace-shortest": "0s",
      ...flags,
    };
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    const instance = (logFile: string) =>
      new Child({
        name: `agent of ${nodeName}`,
        command: process.execPath,
        args: [main, "run", ...args],
        logFile: join(directory, logFile),
        enter: options.enter ?? [],
      });
    const child = instance("agent.log");
    child.start();
    return new AgentProcess(directory, child, address, newToken, () => instance("next-agent.log"));
  }

  /** Runs a command against the agent's status server. Returns its stdout. Rejects if it fails, or after 120 s. */
  async command(...args: readonly string[]): Promise<string> {
    const { stdout } = await execute(process.execPath, [main, ...args, "--server", this.#address], {
      timeout: 120_000,
    });
    return stdout;
  }

  async readiness(): Promise<Health> {
    const response = await fetch(`http://${this.#address}/readyz?verbose`, {
      signal: AbortSignal.timeout(60_000),
    });
    return { ok: response.ok, text: await response.text() };
  }

  /**
   * Returns the value of a sample. Undefined if there is none.
   * @param labels all labels of the sample in the exposition format, such as `{a="b"}`. Default: no labels
   */
  async metric(name: string, labels = ""): Promise<number | undefined> {
    const response = await fetch(`http://${this.#address}/metrics`, { signal: AbortSignal.timeout(60_000) });
    const lines = (await response.text()).split("\n");
    const line = lines.find((each) => each.startsWith(`${name}${labels} `));
    return line === undefined ? undefined : Number(line.split(" ")[1]);
  }

  /** Resolves when it is ready, rejects with its log when it is not in time. */
  async ready(): Promise<void> {
    await this.child.until("ready", async () => {
      const { ok, text } = await this.readiness();
      if (!ok) throw new Error(text);
    });
  }

  /** Replaces the token as the kubelet does: whole, under the same name. The lifetime is in seconds. */
  renewToken(lifetime: number): void {
    writeFileSync(`${this.tokenFile}.new`, this.#newToken(lifetime));
    renameSync(`${this.tokenFile}.new`, this.tokenFile);
  }

  /** What it logged, line by line. */
  logged(): Array<Record<string, unknown>> {
    return this.child.log.split("\n").flatMap((line) => {
      try {
        return [JSON.parse(line)];
      } catch {
        return [];
      }
    });
  }
}
