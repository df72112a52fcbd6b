import type { KubeObject } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import { timestamp } from "./json.ts";

/** The namespaces that every cluster has. */
export function seedNamespaces(): KubeObject[] {
  return ["default", "kube-system"].map((name) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { "kubernetes.io/metadata.name": name } },
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  }));
}

/** A Node as a kubelet registers it, ready and empty. */
export function nodeFor(name: string, clock: Clock): KubeObject {
  const time = timestamp(clock.now());
  const resources = { cpu: "4", memory: "8Gi", pods: "110" };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" },
    },
    spec: {},
    status: {
      capacity: resources,
      allocatable: resources,
      conditions: [
        {
          type: "Ready",
          status: "True",
          reason: "KubeletReady",
          message: "a node of the development cluster",
          lastHeartbeatTime: time,
          lastTransitionTime: time,
        },
      ],
      addresses: [
        { type: "InternalIP", address: "127.0.0.1" },
        { type: "Hostname", address: name },
      ],
      nodeInfo: {
        kubeletVersion: "v1.34.0",
        osImage: "development",
        architecture: "amd64",
        operatingSystem: "linux",
      },
    },
  };
}
