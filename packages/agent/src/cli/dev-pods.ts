import { type ClaimTemplate, EXIT_CODE, EXITS_AFTER_SECONDS, type Workload } from "@nodekeeper/testing";

/** The agent that `nodekeeper dev` runs never evicts pods with this label. */
export const KEEP_LABEL = "example.com/keep";

// The label by which examples/eviction selects pods.
const sampleLabels = { "example.com/sample": "true" };

/**
 * Sample pods: one for each case that eviction treats differently, any of which the sample plugin may select, and one
 * whose container fails repeatedly.
 */
export const sampleWorkloads: readonly Workload[] = [
  {
    ...sampleWorkload("cluster-dns", {}),
    namespace: "kube-system",
    spec: {
      priority: 2_000_000_000,
      priorityClassName: "system-cluster-critical",
      containers: [{ name: "dns", image: "images.example/dns:1.0" }],
    },
  },
  { ...sampleWorkload("log-collector", {}), namespace: "kube-system", owner: "DaemonSet" },
  { ...sampleWorkload("ledger", {}), labels: { ...sampleLabels, [KEEP_LABEL]: "true" } },
  {
    ...sampleWorkload("importer", {}),
    labels: { [KEEP_LABEL]: "true" },
    annotations: { [EXITS_AFTER_SECONDS]: "15", [EXIT_CODE]: "1" },
  },
  sampleWorkload("crawler", {}),
  sampleWorkload("thumbnailer", { requests: { cpu: "100m", memory: "64Mi" } }),
  sampleWorkload("search", {
    requests: { cpu: "250m", memory: "256Mi" },
    limits: { cpu: "250m", memory: "256Mi" },
  }),
];

/** The devices of the sample driver allocated to the pods of `deviceWorkloads`. */
export const claimTemplates: readonly ClaimTemplate[] = [
  { name: "two-accelerators", driver: "accelerators.example.com", count: 2 },
  { name: "one-accelerator", driver: "accelerators.example.com", count: 1 },
];

/** Sample pods with device claims. The sample eviction plugin does not select them. */
export const deviceWorkloads: readonly Workload[] = [
  deviceWorkload("training", "two-accelerators"),
  deviceWorkload("inference", "one-accelerator"),
];

function deviceWorkload(name: string, template: string): Workload {
  const { labels: _, spec, ...rest } = sampleWorkload(name, { claims: [{ name: "devices" }] });
  return {
    ...rest,
    spec: { ...spec, resourceClaims: [{ name: "devices", resourceClaimTemplateName: template }] },
  };
}

function sampleWorkload(name: string, resources: object): Workload {
  return {
    name,
    namespace: "default",
    owner: "ReplicaSet",
    replicas: 1,
    labels: sampleLabels,
    spec: {
      terminationGracePeriodSeconds: 10,
      containers: [{ name: "main", image: `images.example/${name}:1.0`, resources }],
    },
  };
}
