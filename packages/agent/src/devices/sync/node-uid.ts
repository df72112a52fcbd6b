import { type KubeApiClient, nodes } from "@nodekeeper/core/kube";
import { codeOf, NodekeeperError } from "@nodekeeper/core/lib";

/** The UID of the agent's Node, which is the owner of its slices. */
export class NodeUid {
  readonly #client: KubeApiClient;
  readonly #nodeName: string;
  #uid: Promise<string> | undefined;

  constructor(client: KubeApiClient, nodeName: string) {
    this.#client = client;
    this.#nodeName = nodeName;
  }

  /** One request, however many slices are created at once. Throws `unavailable` where there is no such Node. */
  read(signal: AbortSignal): Promise<string> {
    if (this.#uid) return this.#uid;
    const reading = this.#ask(signal);
    this.#uid = reading;
    reading.catch(() => {
      if (this.#uid === reading) this.#uid = undefined;
    });
    return reading;
  }

  /** The Node may have been created again. */
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
    if (!uid)
      throw new NodekeeperError("unavailable", `Node ${this.#nodeName} does not exist (yet)`, {
        id: "NK1212",
      });
    return uid;
  }
}
