import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { Child } from "./child.ts";
import { freePort } from "./free-port.ts";
import { pathOf } from "./parts.ts";

const TMPFS = "/dev/shm";

/**
 * A single etcd on loopback, without TLS. Its data is in /dev/shm if that is writable: each write waits for the disk,
 * and on a busy disk the start of an API server has taken minutes.
 */
export class Etcd {
  readonly url: string;
  readonly #child: Child;
  readonly #data: string;

  private constructor(url: string, child: Child, data: string) {
    this.url = url;
    this.#child = child;
    this.#data = data;
  }

  static async start(directory: string): Promise<Etcd> {
    const [client, peer] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${client}`;
    const peerUrl = `http://127.0.0.1:${peer}`;
    const data = mkdtempSync(join(isWritable(TMPFS) ? TMPFS : directory, `${basename(directory)}-etcd-`));
    const child = new Child({
      name: "etcd",
      command: pathOf("etcd"),
      args: [
        "--name=e2e",
        `--data-dir=${data}`,
        `--listen-client-urls=${url}`,
        `--advertise-client-urls=${url}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=e2e=${peerUrl}`,
        "--log-level=warn",
      ],
      logFile: join(directory, "etcd.log"),
    });
    child.start();
    const etcd = new Etcd(url, child, data);
    await child.until("healthy", () => etcd.revision());
    return etcd;
  }

  /** The store's present revision, which is also the API server's newest resourceVersion. */
  async revision(): Promise<number> {
    const { header } = await this.#call("/v3/kv/range", { key: Buffer.from("/").toString("base64") });
    return Number(header.revision);
  }

  /** Compacts up to the current revision, as kube-apiserver does every 5 minutes by default. Returns the revision. */
  async compact(): Promise<number> {
    const revision = await this.revision();
    await this.#call("/v3/kv/compaction", { revision, physical: true });
    return revision;
  }

  async stop(): Promise<void> {
    await this.#child.stop();
    rmSync(this.#data, { recursive: true, force: true });
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

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
