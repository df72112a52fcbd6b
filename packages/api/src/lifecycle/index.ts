export * from "./newest-of-each-name.ts";

/** A pod in lifecycle events. */
export interface PodIdentity {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** A container or sandbox in lifecycle events. */
export interface ContainerIdentity {
  readonly id: string;
  /** Name of the container in its pod; empty for a sandbox. */
  readonly name: string;
  readonly kind: "container" | "sandbox";
}
