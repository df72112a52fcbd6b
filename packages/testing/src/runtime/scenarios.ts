/** What a player does to a runtime. Times are milliseconds. */
export type Scenario =
  /** Pods that run and stay. */
  | { kind: "deploy"; namespace: string; name: string; replicas: number; containers: readonly string[] }
  /**
   * A container that exits again and again, and is started again with a delay that doubles from `firstDelayMs`
   * (default: 1 s; the kubelet's is 10 s) up to `maxDelayMs` (the kubelet's: 5 min). One that ran for longer than
   * twice the longest delay starts again, as the kubelet's backoff.
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
  /** Every so often a deployment's pods are replaced, one after the other. */
  | { kind: "rollout"; namespace: string; name: string; everyMs: number }
  /** Every so often a pod that runs for a while and completes; it is removed some time later. */
  | { kind: "job"; namespace: string; name: string; everyMs: number; runsMs: number; keptMs: number }
  /** Every so often all containers of all deployed pods exit and are started again. */
  | { kind: "massRestart"; everyMs: number }
  /** Every so often a deployed pod's sandbox fails; the pod gets a new one. */
  | { kind: "sandboxFailure"; everyMs: number }
  /** Every so often a container is killed for its memory, and started again. */
  | { kind: "oomKill"; everyMs: number };

/** A node on which something happens every few seconds, as `npm start` shows it. */
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

/** A node on which nothing changes. */
export const quiet: readonly Scenario[] = everyday.filter(({ kind }) => kind === "deploy");
