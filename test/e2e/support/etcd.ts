import { join } from "node:path";
import { Child } from "./child.ts";
import { freePort } from "./free-port.ts";
import { pathOf } from "./parts.ts";

/** One etcd on loopback, without TLS, its data in the suite's folder. */
export class Etcd {
  readonly url: string;
  readonly #child: Child;

  private constructor(url: string, child: Child) {
    this.url = url;
    this.#child = child;
  }

  static async start(folder: string): Promise<Etcd> {
    const [client, peer] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${client}`;
    const peerUrl = `http://127.0.0.1:${peer}`;
    const child = new Child({
      name: "etcd",
      command: pathOf("etcd"),
      args: [
        "--name=e2e",
        `--data-dir=${join(folder, "etcd")}`,
        `--listen-client-urls=${url}`,
        `--advertise-client-urls=${url}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=e2e=${peerUrl}`,
        "--log-level=warn",
      ],
      logFile: join(folder, "etcd.log"),
    });
    child.start();
    const etcd = new Etcd(url, child);
    await child.until("healthy", () => etcd.revision());
    return etcd;
  }

  /** The store's present revision, which is also the API server's newest resourceVersion. */
  async revision(): Promise<number> {
    const { header } = await this.#call("/v3/kv/range", { key: Buffer.from("/").toString("base64") });
    return Number(header.revision);
  }

  /** Forgets everything before the present revision, as etcd's housekeeping does every few minutes. */
  async compact(): Promise<number> {
    const revision = await this.revision();
    await this.#call("/v3/kv/compaction", { revision, physical: true });
    return revision;
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }

  // etcd serves its gRPC calls as JSON on the same port.
  async #call(path: string, body: object): Promise<{ header: { revision: string } }> {
    const signal = AbortSignal.timeout(60_000);
    const response = await fetch(this.url + path, { method: "POST", body: JSON.stringify(body), signal });
    const text = await response.text();
    if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }
}
