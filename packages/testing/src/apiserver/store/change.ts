import type { KubeObject } from "@nodekeeper/core/kube";

/** One change of a stored object, as watchers see it. */
export interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** The object after the change; for DELETED the last state with the revision of the deletion. */
  readonly object: KubeObject;
  /** The object before; undefined for ADDED. */
  readonly previous?: KubeObject | undefined;
  readonly revision: number;
  /** Serialised events by form, so that many watchers share one buffer. */
  readonly encoded: Map<string, Buffer>;
}
