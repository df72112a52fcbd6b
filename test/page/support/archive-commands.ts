import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { type FakeLogs, startFakeLogs } from "../../../packages/agent/src/cli/archive/testing/fake-logs.ts";
import { runKubectlPlugin } from "../../../packages/agent/src/cli/kubectl/program.ts";
import { kubectlScript } from "../../../packages/agent/src/cli/kubectl/testing/kubectl-script.ts";
import { serveRoutes } from "../../../packages/agent/src/server/testing/serve-routes.ts";
import { recordedArchive } from "./recorded-archive.ts";

/** The address of the store in the documentation. */
export const STORE = "http://victoria-logs.monitoring:9428";

/** `kubectl nodekeeper` in a cluster with one agent, which has no records, and the recorded archive. */
export class ArchiveCommands implements AsyncDisposable {
  readonly #directory = mkdtempSync(join(tmpdir(), "nk-pictures-"));
  readonly #logs: FakeLogs;
  readonly #stopAgent: () => Promise<void>;
  readonly #kubectl: string;

  private constructor(logs: FakeLogs, agent: string, stopAgent: () => Promise<void>) {
    [this.#logs, this.#stopAgent] = [logs, stopAgent];
    const item = {
      metadata: { namespace: "nodekeeper", name: "agent", creationTimestamp: "2026-11-22T08:00:00Z" },
      spec: { nodeName: "worker-000", containers: [{}] },
      status: { phase: "Running", containerStatuses: [{ name: "nodekeeper", state: { running: {} } }] },
    };
    writeFileSync(join(this.#directory, "pods.json"), JSON.stringify({ items: [item] }));
    this.#kubectl = kubectlScript(
      this.#directory,
      `case "$*" in
  "config view"*) echo default ;;
  "get pods"*) cat pods.json ;;
  "get pod "*) echo 'Error from server (NotFound): pods "x" not found' >&2; exit 1 ;;
  port-forward*) echo "Forwarding from 127.0.0.1:${agent.split(":")[1]} -> 10290"; exec sleep 600 ;;
esac`,
    );
  }

  static async start(): Promise<ArchiveCommands> {
    const handle = (query: URLSearchParams): never => {
      throw new NodekeeperError("notFound", `no record of pod ${query.get("pod")}`);
    };
    const { address, stop } = await serveRoutes([{ path: "eviction/explain", summary: "", handle }]);
    const logs = await startFakeLogs();
    logs.rows = recordedArchive().rows;
    return new ArchiveCommands(logs, address, stop);
  }

  /** Returns what a command prints. @param line words separated by spaces, after `kubectl nodekeeper` */
  async run(line: string): Promise<string> {
    let text = "";
    const write = (part: string) => (text += part);
    const args = [...line.split(" "), "--archive", this.#logs.url];
    const output = { write, isTerminal: false, columns: 120 };
    await runKubectlPlugin(["node", "kubectl-nodekeeper", ...args], output, { KUBECTL: this.#kubectl });
    return text.replaceAll(this.#logs.url, STORE);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#logs.stop();
    await this.#stopAgent();
    rmSync(this.#directory, { recursive: true });
  }
}
