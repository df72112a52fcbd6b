import type { KubeObject } from "@nodekeeper/core/kube";
import { type Clock, formatQuantity, quantityOf } from "@nodekeeper/core/lib";
import { timestamp } from "./json.ts";
import type { Machine } from "./machine.ts";

/** Returns the namespaces that every cluster has. */
export function seedNamespaces(): KubeObject[] {
  return ["default", "kube-system"].map((name) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { "kubernetes.io/metadata.name": name } },
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  }));
}

/**
 * Returns a Node as registered by the kubelet: ready, without pods, and with the machine's resources as allocatable.
 */
export function nodeFor(name: string, machine: Machine, clock: Clock): KubeObject {
  const time = timestamp(clock.now());
  const { cpus, memoryBytes, architecture, kernelVersion, osImage, address } = machine;
  const memory = formatQuantity(quantityOf(memoryBytes, "BinarySI"));
  const resources = { cpu: String(cpus), memory, pods: "110" };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
      },
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
        { type: "InternalIP", address },
        { type: "Hostname", address: name },
      ],
      nodeInfo: {
        kubeletVersion: "v1.34.0",
        containerRuntimeVersion: "simulated://0.1.0",
        kernelVersion,
        osImage,
        architecture,
        operatingSystem: "linux",
      },
    },
  };
}
