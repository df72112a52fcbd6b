import { NodeMissing } from "@nodekeeper/api/errors";
import type { ApiResource, ApplyOptions, KubeClient, KubeObject } from "@nodekeeper/core/kube";
import { codeOf } from "@nodekeeper/core/lib";
import { type ApplyPart, applyBody } from "./bodies.ts";
import type { PublishContext } from "./context.ts";
import type { JsonObject } from "./json.ts";
import { keepForeignTaints, taintsOf } from "./taints.ts";
import { withdrawal } from "./withdrawal.ts";

/** Desired content of a part to apply. */
export interface PartWrite {
  part: ApplyPart;
  /** `Desired.fields`. */
  fields: JsonObject;
  /** Whether the agent may own the list of taints on the server, so that omitted taints would be removed. */
  ownsTaints: boolean;
}

export interface RemoteObjectOptions
  extends Pick<PublishContext, "nodeName" | "fieldManager" | "isFrozenTaint"> {
  client: KubeClient;
}

/** An object on the API server. Implements the special rules for applying to Nodes and taints. */
export class RemoteObject {
  readonly resource: ApiResource;
  readonly #isNode: boolean;
  readonly #options: RemoteObjectOptions;

  constructor(resource: ApiResource, isNode: boolean, options: RemoteObjectOptions) {
    this.resource = resource;
    this.#isNode = isNode;
    this.#options = options;
  }

  /** Reads the object. Undefined if it does not exist. */
  async read(signal: AbortSignal): Promise<KubeObject | undefined> {
    const { client, nodeName } = this.#options;
    try {
      return await client.get(this.resource, nodeName, { signal });
    } catch (error) {
      if (codeOf(error) === "notFound") return undefined;
      throw error;
    }
  }

  /**
   * Applies a part and returns the object. Throws `notFound` if the Node does not exist: the agent never creates Nodes.
   */
  async apply(write: PartWrite, signal: AbortSignal): Promise<KubeObject> {
    const { client } = this.#options;
    const live = await this.#live(write, signal);
    if (live && this.#isNode && write.part === "status") await this.#withdraw(live, write.fields, signal);
    return await client.apply(this.resource, this.#body(write, live), applyOptions(write.part, signal));
  }

  /** Applies a part as a dry run. Throws as `apply` would. */
  async tryOut(write: PartWrite, signal: AbortSignal): Promise<void> {
    const body = this.#body(write, await this.#live(write, signal));
    const options = { ...applyOptions(write.part, signal), dryRun: true };
    await this.#options.client.apply(this.resource, body, options);
  }

  // Reads the live object only if the write depends on it.
  async #live({ fields, ownsTaints }: PartWrite, signal: AbortSignal): Promise<KubeObject | undefined> {
    if (!this.#isNode && !ownsTaints && taintsOf(fields).length === 0) return undefined;
    const live = await this.read(signal);
    if (this.#isNode && !live) {
      throw new NodeMissing({ node: this.#options.nodeName }, { code: "notFound" });
    }
    return live;
  }

  #body({ fields, ownsTaints }: PartWrite, live: KubeObject | undefined): KubeObject {
    const { nodeName: name, fieldManager: manager, isFrozenTaint: isFrozen } = this.#options;
    const taints = taintsOf(fields);
    // An apply would create a Node that was deleted meanwhile. With the UID, it fails instead.
    const uid = this.#isNode ? live?.metadata.uid : undefined;
    const body = applyBody(this.resource, fields, { name, ...(uid ? { uid } : {}) });
    if (taints.length > 0 || ownsTaints) keepForeignTaints(body, live, taints, { manager, isFrozen });
    return body;
  }

  async #withdraw(live: KubeObject, fields: JsonObject, signal: AbortSignal): Promise<void> {
    const { client, fieldManager, nodeName } = this.#options;
    const patch = withdrawal(live, fieldManager, fields);
    if (patch) await client.mergePatch(this.resource, nodeName, patch, { subresource: "status", signal });
  }
}

function applyOptions(part: ApplyPart, signal: AbortSignal): ApplyOptions {
  return { force: true, signal, ...(part === "status" ? { subresource: "status" } : {}) };
}
