import type { ApiObject } from "../admin-client.ts";

export interface KubeletPlaces {
  /** The runtime's socket. */
  runtime: string;
  /** Of the kubelet's own server, on loopback. */
  port: number;
  certificate: string;
  key: string;
  /** Of those who may ask the kubelet. */
  authority: string;
}

/** The kubelet's directory for static pods. */
export const staticPodDirectory = "/var/lib/kubelet/manifests";

/**
 * Returns a KubeletConfiguration that works on small machines: with cgroup v1 or v2, without CAP_SYS_RESOURCE, without
 * iptables, and however full the disk is.
 *
 * @param changes fields that replace the usual ones; `featureGates` are merged
 */
export function kubeletConfiguration(places: KubeletPlaces, changes: ApiObject = {}): ApiObject {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    containerRuntimeEndpoint: `unix://${places.runtime}`,
    address: "127.0.0.1",
    port: places.port,
    tlsCertFile: places.certificate,
    tlsPrivateKeyFile: places.key,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: false },
      x509: { clientCAFile: places.authority },
    },
    authorization: { mode: "AlwaysAllow" },
    healthzPort: 0,
    staticPodPath: staticPodDirectory,
    volumePluginDir: "/var/lib/kubelet/volume-plugins",
    cgroupDriver: "cgroupfs",
    failCgroupV1: false,
    failSwapOn: false,
    enforceNodeAllocatable: [],
    makeIPTablesUtilChains: false,
    resolvConf: "",
    clusterDNS: ["10.0.0.10"],
    evictionHard: { "memory.available": "100Mi" },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    // Shorter than the defaults of 10 s, 5 min and 20 s.
    nodeStatusUpdateFrequency: "2s",
    crashLoopBackOff: { maxContainerRestartPeriod: "2s" },
    fileCheckFrequency: "1s",
    ...changes,
    featureGates: { KubeletInUserNamespace: true, ...changes.featureGates },
  };
}
