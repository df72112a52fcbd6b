import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeObject } from "@nodekeeper/core/kube";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import {
  createDevApiServer,
  type DevApiServer,
  type Fault,
  type ReceivedRequest,
  type RequestInfo,
} from "@nodekeeper/testing";

export const NODE = "worker-1";
export const CNR_RESOURCE = "customnoderesources.node.katalyst.kubewharf.io";

/** A request as the API server met it, and when, by `performance.now()`. */
export interface SeenRequest extends RequestInfo {
  at: number;
  /** Set when the server was about to handle it; absent for those that met a fault. */
  body?: unknown;
}

/** An API server with a directory for what belongs to it: sockets, state, kubeconfig. */
export interface TestCluster {
  server: DevApiServer;
  /** Removed by `stop`. */
  directory: string;
  kubeconfig: string;
  /** Every request since the start, those that met a fault too. */
  requests: SeenRequest[];
  /** What is done to requests; assign to change it. */
  fault: (request: RequestInfo) => Fault | undefined;
  /** Decides over requests whose body was read; assign to change it. */
  admit: (request: ReceivedRequest) => Fault | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into objects of every shape
  cnr(): any;
  // biome-ignore lint/suspicious/noExplicitAny: the same
  node(): any;
  /** The value of a widget resource in the CNR's status. */
  widgets(name: string): string | undefined;
  /** Creates a ready pod on the node. Returns its UID. */
  addPod(name: string, changes?: { metadata?: object; spec?: object }): string;
  /** Evictions that reached the server, as names of pods. */
  evictions(): string[];
  /** Returns the PATCH requests of a resource that reached `admit`, oldest first, without dry runs. */
  writes(plural: string): SeenRequest[];
  stop(): Promise<void>;
}

/**
 * Starts an API server. With `withNode: false` the Node object is missing; with `removePodsAfterGrace: false` a deleted
 * pod stays until somebody plays the kubelet. `bookmarkIntervalMs` is one minute unless set, as that of an API server.
 */
export async function startCluster({
  withNode = true,
  removePodsAfterGrace = true,
  bookmarkIntervalMs = 60_000,
} = {}): Promise<TestCluster> {
  const directory = mkdtempSync(join(tmpdir(), "nk-it-"));
  const requests: SeenRequest[] = [];
  const server = createDevApiServer({
    // Plugins of many tests report fields that no kind has; those of real servers are in test/e2e.
    checkFields: false,
    clock: systemClock,
    log: silentLogger,
    removePodsAfterGrace,
    bookmarkIntervalMs,
    faults: (request) => {
      requests.push({ ...request, at: performance.now() });
      return cluster.fault(request);
    },
    admit: (request) => {
      const seen = requests.findLast(
        ({ method, path, body }) => method === request.method && path === request.path && body === undefined,
      );
      if (seen) seen.body = request.body;
      return cluster.admit(request);
    },
  });
  await server.start();
  if (withNode) server.seedNode(NODE);
  const kubeconfig = join(directory, "kubeconfig");
  await server.writeKubeconfig(kubeconfig);
  const get = (resource: string): KubeObject | undefined => server.store.get(resource, NODE);
  const cluster: TestCluster = {
    server,
    directory,
    kubeconfig,
    requests,
    fault: () => undefined,
    admit: () => undefined,
    cnr: () => get(CNR_RESOURCE),
    node: () => get("nodes"),
    widgets: (name) => cluster.cnr()?.status?.resources?.capacity?.[`widgets.example/${name}`],
    writes: (plural) =>
      requests.filter(
        ({ method, resource, query, body }) =>
          method === "PATCH" && resource?.plural === plural && !query.has("dryRun") && body !== undefined,
      ),
    addPod(name, { metadata, spec } = {}) {
      const pod = server.store.put({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace: "default", ...metadata },
        spec: {
          nodeName: NODE,
          terminationGracePeriodSeconds: 1,
          containers: [{ name: "app", image: "app" }],
          ...spec,
        },
        status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
      });
      return pod.metadata.uid!;
    },
    evictions: () =>
      requests.flatMap(({ method, path, body }) => {
        const name = /\/pods\/([^/]+)\/eviction$/.exec(path)?.[1];
        return method === "POST" && name && body !== undefined ? [name] : [];
      }),
    async stop() {
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return cluster;
}
