/** A controller of pods, as users name it. */
export interface OwnerName {
  /** "Deployment" */
  kind: string;
  name: string;
}

const kinds: Readonly<Record<string, string>> = {
  ...{ deploy: "Deployment", rs: "ReplicaSet", sts: "StatefulSet", ds: "DaemonSet", cj: "CronJob" },
  ...{ rc: "ReplicationController", deployment: "Deployment", replicaset: "ReplicaSet", job: "Job" },
  ...{ statefulset: "StatefulSet", daemonset: "DaemonSet", cronjob: "CronJob" },
  replicationcontroller: "ReplicationController",
};

/**
 * Returns the controller that "deployment/web" or "Rollout/web" names, with kubectl's names of kinds in lower case.
 * Undefined for anything else, such as a pod and its namespace.
 */
export function parseOwner(text: string): OwnerName | undefined {
  const [kind = "", name = "", ...rest] = text.split("/");
  if (name === "" || rest.length > 0) return undefined;
  const known = kinds[kind] ?? kinds[kind.replace(/s$/, "")];
  if (known !== undefined) return { kind: known, name };
  return /^[A-Z][A-Za-z0-9]*$/.test(kind) ? { kind, name } : undefined;
}

// Names that a Deployment gives its ReplicaSets, and a CronJob its Jobs: pkg/controller/deployment, cronjob.
const ownedNames: Readonly<Record<string, readonly [kind: string, suffix: string]>> = {
  Deployment: ["ReplicaSet", "-[a-z0-9]{1,10}"],
  CronJob: ["Job", "-[0-9]+"],
};

/**
 * Returns a regular expression for the attribute `nodekeeper.pod.owner` of a controller's pods. For a Deployment or a
 * CronJob, it matches ReplicaSets or Jobs whose names have the form that the controller generates.
 */
export function ownerPattern({ kind, name }: OwnerName): string {
  const [owned, suffix] = ownedNames[kind] ?? [kind, ""];
  return `^${owned}/${name.replaceAll(/[^A-Za-z0-9-]/g, "\\$&")}${suffix}$`;
}
