/** Changes that a player makes to a runtime. Times are in milliseconds. */
export type Scenario =
  /** Pods that keep running. */
  | { kind: "deploy"; namespace: string; name: string; replicas: number; containers: readonly string[] }
  /**
   * A container that exits repeatedly and is restarted with a delay that doubles from `firstDelayMs` (default 1 s; 10 s
   * in the kubelet) up to `maxDelayMs` (5 min in the kubelet). As in the kubelet, the backoff is reset if the container
   * ran for longer than twice the maximum delay.
   */
  | {
      kind: "crashLoop";
      namespace: string;
      name: string;
      container: string;
      runsMs: number;
      exitCode: number;
      firstDelayMs?: number;
      maxDelayMs: number;
    }
  /** Periodically replaces a deployment's pods one by one. */
  | { kind: "rollout"; namespace: string; name: string; everyMs: number }
  /** Periodically starts a pod that completes after some time and is removed later. */
  | { kind: "job"; namespace: string; name: string; everyMs: number; runsMs: number; keptMs: number }
  /** Periodically restarts all containers of all deployed pods. */
  | { kind: "massRestart"; everyMs: number }
  /** Periodically, a deployed pod's sandbox fails and is replaced. */
  | { kind: "sandboxFailure"; everyMs: number }
  /** Periodically, a container is OOM-killed and restarted. */
  | { kind: "oomKill"; everyMs: number };

/** A node with changes every few seconds, as shown by `npm start`. */
export const everyday: readonly Scenario[] = [
  { kind: "deploy", namespace: "kube-system", name: "kube-proxy", replicas: 1, containers: ["kube-proxy"] },
  { kind: "deploy", namespace: "kube-system", name: "coredns", replicas: 2, containers: ["coredns"] },
  {
    kind: "deploy",
    namespace: "kube-system",
    name: "metrics-agent",
    replicas: 1,
    containers: ["agent", "exporter"],
  },
  { kind: "deploy", namespace: "shop", name: "web", replicas: 3, containers: ["nginx", "log-shipper"] },
  { kind: "deploy", namespace: "shop", name: "cart", replicas: 2, containers: ["cart"] },
  { kind: "deploy", namespace: "default", name: "redis", replicas: 1, containers: ["redis"] },
  {
    kind: "crashLoop",
    namespace: "default",
    name: "importer",
    container: "importer",
    runsMs: 2_000,
    exitCode: 1,
    maxDelayMs: 30_000,
  },
  { kind: "rollout", namespace: "shop", name: "web", everyMs: 60_000 },
  { kind: "job", namespace: "shop", name: "report", everyMs: 20_000, runsMs: 5_000, keptMs: 15_000 },
  { kind: "oomKill", everyMs: 45_000 },
];

/** A node without changes. */
export const quiet: readonly Scenario[] = everyday.filter(({ kind }) => kind === "deploy");
