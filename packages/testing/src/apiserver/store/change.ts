import type { KubeObject } from "@nodekeeper/core/kube";

/** A change of a stored object, as sent to watchers. */
export interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** The object after the change. For DELETED, the last state with the revision of the deletion. */
  readonly object: KubeObject;
  /** The object before the change. Undefined for ADDED. */
  readonly previous?: KubeObject | undefined;
  readonly revision: number;
  /** Serialized events by form, shared by all watchers. */
  readonly encoded: Map<string, Buffer>;
}
