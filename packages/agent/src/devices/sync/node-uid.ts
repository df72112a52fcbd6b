import { NodeMissing } from "@nodekeeper/api/errors";
import { type KubeApiClient, nodes } from "@nodekeeper/core/kube";
import { codeOf } from "@nodekeeper/core/lib";

/** The UID of the agent's Node, for the owner references of its slices. */
export class NodeUid {
  readonly #client: KubeApiClient;
  readonly #nodeName: string;
  #uid: Promise<string> | undefined;

  constructor(client: KubeApiClient, nodeName: string) {
    this.#client = client;
    this.#nodeName = nodeName;
  }

  /**
   * Returns the cached UID, or requests it once for all concurrent callers. Throws `unavailable` if the Node does not
   * exist.
   */
  read(signal: AbortSignal): Promise<string> {
    if (this.#uid) return this.#uid;
    const reading = this.#ask(signal);
    this.#uid = reading;
    reading.catch(() => {
      if (this.#uid === reading) this.#uid = undefined;
    });
    return reading;
  }

  /** Drops the cached UID, because the Node may have been recreated. */
  forget(): void {
    this.#uid = undefined;
  }

  async #ask(signal: AbortSignal): Promise<string> {
    let uid: string | undefined;
    try {
      uid = (await this.#client.get(nodes, this.#nodeName, { signal })).metadata.uid;
    } catch (error) {
      if (codeOf(error) !== "notFound") throw error;
    }
    // Without an owner a slice would outlive its Node.
    if (!uid) throw new NodeMissing({ node: this.#nodeName });
    return uid;
  }
}
