import type { ApiResource, ApplyOptions, KubeObject } from "@nodekeeper/core/kube";
import { codeOf, NodekeeperError } from "@nodekeeper/core/lib";
import { type ApplyPart, applyBody } from "./bodies.ts";
import type { JsonObject } from "./json.ts";
import type { PublisherOptions } from "./publish-options.ts";
import { keepForeignTaints, taintsOf } from "./taints.ts";
import { withdrawal } from "./withdrawal.ts";

/** A part of an object as the server is to hold it. */
export interface PartWrite {
  part: ApplyPart;
  /** Of `Desired`. */
  fields: JsonObject;
  /** Whether the list of taints may be the agent's on the server: what it does not apply of it is removed. */
  ownsTaints: boolean;
}

/** One object at the API server, and what must be heeded when it is applied. */
export class RemoteObject {
  readonly resource: ApiResource;
  readonly #isNode: boolean;
  readonly #options: PublisherOptions;

  constructor(resource: ApiResource, isNode: boolean, options: PublisherOptions) {
    this.resource = resource;
    this.#isNode = isNode;
    this.#options = options;
  }

  /** The object as it is; undefined where there is none. */
  async read(signal: AbortSignal): Promise<KubeObject | undefined> {
    const { client, nodeName } = this.#options;
    try {
      return await client.get(this.resource, nodeName, { signal });
    } catch (error) {
      if (codeOf(error) === "notFound") return undefined;
      throw error;
    }
  }

  /** Applies a part; answers the object. Throws `notFound` for a Node that is not there: the agent makes none. */
  async apply(write: PartWrite, signal: AbortSignal): Promise<KubeObject> {
    const { client } = this.#options;
    const live = await this.#live(write, signal);
    if (live && this.#isNode && write.part === "status") await this.#withdraw(live, write.fields, signal);
    return await client.apply(this.resource, this.#body(write, live), applyOptions(write.part, signal));
  }

  /** Asks the server whether it would take the part, and changes nothing. Throws as `apply` would. */
  async tryOut(write: PartWrite, signal: AbortSignal): Promise<void> {
    const body = this.#body(write, await this.#live(write, signal));
    const options = { ...applyOptions(write.part, signal), dryRun: true };
    await this.#options.client.apply(this.resource, body, options);
  }

  // Read only where the write depends on it.
  async #live({ fields, ownsTaints }: PartWrite, signal: AbortSignal): Promise<KubeObject | undefined> {
    if (!this.#isNode && !ownsTaints && taintsOf(fields).length === 0) return undefined;
    const live = await this.read(signal);
    if (this.#isNode && !live) {
      throw new NodekeeperError("notFound", `Node ${this.#options.nodeName} does not exist (yet)`);
    }
    return live;
  }

  #body({ fields, ownsTaints }: PartWrite, live: KubeObject | undefined): KubeObject {
    const { nodeName: name, fieldManager: manager, managedTaintPrefixes: managedPrefixes } = this.#options;
    const taints = taintsOf(fields);
    // An apply would make a Node that went meanwhile. With a uid it fails instead.
    const uid = this.#isNode ? live?.metadata.uid : undefined;
    const body = applyBody(this.resource, fields, { name, ...(uid ? { uid } : {}) });
    if (taints.length > 0 || ownsTaints) keepForeignTaints(body, live, taints, { manager, managedPrefixes });
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
