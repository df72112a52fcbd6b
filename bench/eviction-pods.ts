import type { KubeObject } from "@nodekeeper/core/kube";

/** Pods as a busy node has them, about 8 KB each in JSON. */
export function benchPods(count: number, nodeName: string): KubeObject[] {
  return Array.from({ length: count }, (_, at) => benchPod(at, nodeName));
}

/** One of them. */
export function benchPod(at: number, nodeName: string): KubeObject {
  const uid = `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`;
  const name = `web-${String(at % 17)}-6d4b75cb6d-${at.toString(36).padStart(5, "0")}`;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      uid,
      name,
      namespace: `team-${at % 12}`,
      resourceVersion: String(1_000 + at),
      creationTimestamp: "2026-08-01T10:20:30Z",
      labels: {
        "app.kubernetes.io/name": "web",
        "app.kubernetes.io/instance": `web-${at % 17}`,
        "app.kubernetes.io/version": "4.17.2",
        "app.kubernetes.io/part-of": "shop",
        "pod-template-hash": "6d4b75cb6d",
      },
      annotations: {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9090",
        "example.com/checksum": `${at}`.padEnd(64, "0"),
        "katalyst.kubewharf.io/qos_level": at % 3 === 0 ? "reclaimed_cores" : "shared_cores",
      },
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "ReplicaSet",
          name: `web-${at % 17}`,
          uid: `rs-${at % 17}`,
          controller: true,
        },
      ],
      managedFields: managedFields(),
    },
    spec: {
      nodeName,
      priority: at % 5,
      terminationGracePeriodSeconds: 30,
      serviceAccountName: "web",
      schedulerName: "default-scheduler",
      containers: ["app", "sidecar", "exporter"].map(container),
      volumes: [
        { name: "config", configMap: { name: "web-config", defaultMode: 420 } },
        { name: "scratch", emptyDir: { sizeLimit: "1Gi" } },
      ],
      tolerations: [
        {
          key: "node.kubernetes.io/not-ready",
          operator: "Exists",
          effect: "NoExecute",
          tolerationSeconds: 300,
        },
        {
          key: "node.kubernetes.io/unreachable",
          operator: "Exists",
          effect: "NoExecute",
          tolerationSeconds: 300,
        },
      ],
    },
    status: {
      phase: "Running",
      qosClass: "Burstable",
      podIP: "10.1.2.3",
      startTime: "2026-08-01T10:20:31Z",
      conditions: ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map((type) => ({
        type,
        status: "True",
        lastTransitionTime: "2026-08-01T10:20:40Z",
      })),
      containerStatuses: ["app", "sidecar", "exporter"].map((name) => ({
        name,
        ready: true,
        restartCount: 0,
        image: `images.example.com/shop/${name}:4.17.2`,
        imageID: `images.example.com/shop/${name}@sha256:${"a".repeat(64)}`,
        containerID: `containerd://${`${at}${name}`.padEnd(64, "b")}`,
        state: { running: { startedAt: "2026-08-01T10:20:39Z" } },
      })),
    },
  };
}

function container(name: string) {
  const probe = {
    httpGet: { path: "/healthz", port: 8080, scheme: "HTTP" },
    periodSeconds: 10,
    timeoutSeconds: 1,
  };
  return {
    name,
    image: `images.example.com/shop/${name}:4.17.2`,
    args: ["--config=/etc/web/config.yaml", "--listen=:8080", "--log-level=info"],
    env: Array.from({ length: 8 }, (_, at) => ({ name: `SETTING_${at}`, value: `value-of-setting-${at}` })),
    ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    livenessProbe: probe,
    readinessProbe: probe,
    volumeMounts: [
      { name: "config", mountPath: "/etc/web" },
      { name: "scratch", mountPath: "/tmp" },
    ],
    terminationMessagePath: "/dev/termination-log",
    imagePullPolicy: "IfNotPresent",
  };
}

function managedFields() {
  const fields = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [`f:field-${at}`, { "f:name": {}, "f:value": {} }]),
  );
  return [
    {
      manager: "kube-controller-manager",
      operation: "Update",
      apiVersion: "v1",
      time: "2026-08-01T10:20:30Z",
      fieldsV1: { "f:spec": fields, "f:metadata": fields },
    },
  ];
}
