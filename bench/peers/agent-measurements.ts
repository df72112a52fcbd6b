import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { agentEnvironment, agentOptions } from "../../packages/agent/src/launch.ts";
import { freePort } from "../../test/e2e/support/free-port.ts";
import { AgentProcess } from "../agent-process.ts";
import { benchPods } from "../eviction-pods.ts";
import { cpuSecondsOf, residentMbOf } from "../process-usage.ts";
import { RuntimeProcess } from "../runtime-client.ts";
import type { Measure } from "./measure.ts";

const NODE = "bench";
const PODS = 110;
/** The step of CPU time: no less can be seen. */
const CPU_STEP_SECONDS = 0.01;

/** Where an agent finds what it needs. */
export interface Places {
  kubeconfig: string;
  directory: string;
  /** The directory of the plugins' sockets. */
  plugins: string;
  runtime: string;
  /** Of an HTTP server that returns the node's pods, as the kubelet's read-only port. */
  podsPort: number;
  /** One that is free. */
  port: number;
}

/** How an agent of another project is started, and which parts of ours are compared with it. */
export interface OtherAgent {
  name: string;
  /** The resource of its own object: it has started when that is written. Undefined: it prints a line. */
  resource?: string;
  args(places: Places): string[];
  env?: Readonly<Record<string, string>>;
  /** Flags of Nodekeeper. */
  ours(places: Pick<Places, "runtime">): Readonly<Record<string, string>>;
  /** From the start until CPU at rest is measured, and for how long that is; memory is measured after both. */
  idleSeconds: number;
}

const everything: OtherAgent["ours"] = ({ runtime }) => ({ lifecycle: "true", "runtime-endpoint": runtime });
const reportingAlone = { lifecycle: "false", eviction: "false" };

export const katalystAgent: OtherAgent = {
  name: "katalyst",
  resource: "customnoderesources",
  ours: everything,
  idleSeconds: 30,
  args: ({ podsPort, runtime, ...places }) => [
    "--agents=katalyst-agent-reporter,katalyst-agent-eviction",
    "--reporter-plugins=system-reporter-plugin,-kubelet-reporter-plugin",
    "--metric-provisioners=kubelet",
    `--kubelet-read-only-port=${podsPort}`,
    `--remote-runtime-endpoint=unix://${runtime}`,
    ...katalystPlaces(places),
  ],
};

// The image and the systemd unit set them, so that the agent does not start over.
const asInImage = { nodeArgs: agentOptions, env: agentEnvironment };

/** The flags of katalyst-agent that name places. */
export function katalystPlaces({
  kubeconfig,
  directory,
  plugins,
  port,
}: Pick<Places, "kubeconfig" | "directory" | "plugins" | "port">): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--node-name=${NODE}`,
    `--generic-endpoint=127.0.0.1:${port}`,
    `--locking-file=${join(directory, "lock")}`,
    `--plugin-registration-dir=${plugins}`,
    `--checkpoint-manager-directory=${join(directory, "checkpoints")}`,
  ];
}

export const katalystReporter: OtherAgent = {
  name: "reporting",
  resource: "customnoderesources",
  ours: () => reportingAlone,
  idleSeconds: 20,
  args: (places) => [
    "--agents=katalyst-agent-reporter",
    "--reporter-plugins=system-reporter-plugin,-kubelet-reporter-plugin",
    "--metric-provisioners=kubelet",
    ...katalystPlaces(places),
  ],
};

/** What an agent in Node cannot be below: a process that has nothing to do. */
export const emptyProcess: OtherAgent = {
  name: "off",
  ours: () => ({ ...reportingAlone, "reporting-in-tree-plugins": "-system-reporter-plugin" }),
  idleSeconds: 10,
  args: () => ["--eval", "console.log('started'); setInterval(() => {}, 1e9)"],
};

export const nfdWorker: OtherAgent = {
  name: "nfd",
  resource: "nodefeatures",
  ours: everything,
  idleSeconds: 30,
  args: ({ kubeconfig, port }) => [`-kubeconfig=${kubeconfig}`, "-owner-refs=", `-port=${port}`],
  env: { NODE_NAME: NODE, KUBERNETES_NAMESPACE: "default" },
};

/** The start of an agent, its CPU at rest, and its memory after that, beside 110 pods. */
export function measureAgent(other: OtherAgent): Measure {
  return async ({ side, peer, quick, alone }) => {
    const node = await alone(() => startNode(other));
    try {
      const { pid, startMs } = await alone(() =>
        side === "agent" ? node.startOurs() : node.startPeer(peer),
      );
      const idleMs = quick ? 10_000 : other.idleSeconds * 1_000;
      await systemClock.sleep(idleMs);
      const before = cpuSecondsOf(pid);
      await systemClock.sleep(idleMs);
      const cpu = Math.max(cpuSecondsOf(pid) - before, CPU_STEP_SECONDS);
      return {
        [`agent-${other.name}-rss`]: residentMbOf(pid, "VmRSS"),
        [`agent-${other.name}-anonymous`]: residentMbOf(pid, "RssAnon"),
        [`agent-${other.name}-start`]: startMs,
        [`agent-${other.name}-idle`]: (cpu / (idleMs / 1_000)) * 100,
      };
    } finally {
      await node.remove();
    }
  };
}

interface Started {
  pid: number;
  startMs: number;
}

/** A node with an API server, pods and a container runtime, on which an agent is started. */
async function startNode(other: OtherAgent) {
  const written = Promise.withResolvers<number>();
  const server = createDevApiServer({
    clock: systemClock,
    log: silentLogger,
    checkFields: false,
    onRequest: ({ method, path }) => {
      if (method !== "GET" && other.resource && path.includes(other.resource))
        written.resolve(performance.now());
    },
  });
  await server.start();
  server.seedNode(NODE);
  server.store.put(nodeFeatureDefinition);
  const pods = benchPods(PODS, NODE);
  for (const pod of pods) server.store.put(pod);
  const podList = JSON.stringify({ kind: "PodList", apiVersion: "v1", items: pods });
  const kubelet = createServer((_request, response) => response.end(podList)).listen(0, "127.0.0.1");
  await once(kubelet, "listening");
  const runtime = await new RuntimeProcess(PODS, 2, "on").ready();
  const agent = new AgentProcess();
  await server.writeKubeconfig(agent.kubeconfig);
  let child: ChildProcess | undefined;
  return {
    async startOurs(): Promise<Started> {
      const startMs = await agent.start(other.ours({ runtime: runtime.socket }), asInImage);
      return { pid: agent.pid, startMs };
    },
    async startPeer(program: string): Promise<Started> {
      const places = {
        kubeconfig: agent.kubeconfig,
        directory: agent.directory,
        plugins: agent.plugins,
        runtime: runtime.socket,
        podsPort: (kubelet.address() as AddressInfo).port,
        port: await freePort(),
      };
      const startedAt = performance.now();
      child = spawn(program, other.args(places), {
        stdio: ["ignore", "pipe", "ignore"],
        env: { ...process.env, ...other.env },
      });
      child.once("exit", (code) => written.reject(new Error(`${program} exited with ${code}`)));
      child.stdout!.on("data", () => {
        if (!other.resource) written.resolve(performance.now());
      });
      return { pid: child.pid!, startMs: (await written.promise) - startedAt };
    },
    async remove(): Promise<void> {
      child?.removeAllListeners("exit").kill("SIGKILL");
      await agent.remove();
      runtime.stop();
      kubelet.close();
      await server.stop();
    },
  };
}

// That of Node Feature Discovery, without its schema.
const nodeFeatureDefinition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "nodefeatures.nfd.k8s-sigs.io" },
  spec: {
    group: "nfd.k8s-sigs.io",
    scope: "Namespaced",
    names: { kind: "NodeFeature", plural: "nodefeatures", singular: "nodefeature" },
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};
