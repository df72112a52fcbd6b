import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { AdminClient, type ApiObject } from "./admin-client.ts";
import { AgentProcess } from "./agent-process.ts";
import { Child } from "./child.ts";
import { Containerd, type ContainerdPart, runcOf } from "./containerd.ts";
import type { ControlPlane } from "./control-plane.ts";
import { freePort } from "./free-port.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { kubeletConfiguration, staticPodDirectory } from "./node/kubelet-configuration.ts";
import { Machine } from "./node/machine.ts";
import { machineAddress, writeNetwork } from "./node/network.ts";
import { missingParts, type PartName, pathOf } from "./parts.ts";

/** Those that the kubelet works with. */
export type NodeContainerd = Exclude<ContainerdPart, "oldContainerd">;

export interface NodeOptions {
  /** Default "worker-1". */
  name?: string;
  /** Default: 1.7. */
  containerd?: NodeContainerd;
  /** Fields of the KubeletConfiguration in place of the usual ones. */
  kubelet?: ApiObject;
}

/** A node with its real kubelet, and the scheduler and the controllers that make pods for it. */
export interface ClusterNode {
  readonly name: string;
  readonly containerd: Containerd;
  readonly kubelet: Child;
  readonly scheduler: Child;
  readonly controllerManager: Child;
  /** The kubelet's own server: its "/pods" is what it believes. */
  readonly kubeletServer: AdminClient;
  /** In front of a command that is to see the node's /run, /var/lib, /var/log and cgroups. */
  readonly enter: readonly string[];
  /** A path on the node, such as "/var/lib/kubelet/plugins_registry", as the test finds it. */
  path(onNode: string): string;
  /** Resolves when the started or restarted kubelet is healthy, and its Node is Ready and not tainted as not ready. */
  ready(): Promise<void>;
  /** Starts `nodekeeper run` on the node with its default paths of the kubelet. Does not wait until it is ready. */
  startAgent(flags?: Readonly<Record<string, string>>): Promise<AgentProcess>;
  /** What the containers of this name in a pod have written, all restarts after each other. */
  logOf(pod: ApiObject, container: string): string;
  /** Adds or replaces a static pod; without a pod it is removed. */
  writeStaticPod(name: string, pod?: ApiObject): void;
  /** Stops all of it; no process, mount, cgroup or network interface stays. */
  stop(): Promise<void>;
}

const parts: readonly PartName[] = [
  ...(["etcd", "openssl", "kubeApiServer", "kubectl", "cnrDefinition"] as const),
  ...(["kubelet", "kubeScheduler", "kubeControllerManager", "cniPlugins", "busybox"] as const),
];

/** Returns why a node with this containerd can't be started on this machine. Undefined if it can. */
export function missingForNode(containerd: NodeContainerd = "containerd"): string | undefined {
  if (process.getuid?.() !== 0) return "only root can run containers";
  return missingParts(...parts, containerd, runcOf(containerd));
}

/** Starts containerd, kubelet, kube-scheduler and kube-controller-manager beside a control plane, and waits for the Node. */
export async function startNode(cluster: ControlPlane, options: NodeOptions = {}): Promise<ClusterNode> {
  const { name = "worker-1", containerd: runtime = "containerd" } = options;
  const directory = join(cluster.directory, "node");
  mkdirSync(directory);
  const cleanups: Array<() => unknown> = [];
  const stop = async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  const start = (child: Child) => {
    child.start();
    cleanups.push(() => child.stop());
    return child;
  };
  try {
    const machine = await Machine.start(directory);
    cleanups.push(() => machine.stop());
    const network = { plugins: dirname(pathOf("cniPlugins")), configuration: join(directory, "cni") };
    writeNetwork(network.configuration);
    const { enter } = machine;
    const containerd = await Containerd.start(join(directory, "containerd"), runtime, { enter, network });
    cleanups.push(() => containerd.stop());
    const controllerManager = start(await controllers(cluster));
    const scheduler = start(await schedulerOf(cluster));

    mkdirSync(machine.path(staticPodDirectory), { recursive: true });
    const alternativeNames = ["IP:127.0.0.1"];
    const serving = await cluster.authority.issue("kubelet", { commonName: name, alternativeNames });
    const port = await freePort();
    const configuration = kubeletConfiguration(
      { runtime: containerd.socket, port, ...serving, authority: cluster.trustFile },
      options.kubelet,
    );
    writeFileSync(machine.path("/var/lib/kubelet/config.yaml"), JSON.stringify(configuration));
    const address = machineAddress();
    const kubelet = start(
      new Child({
        name: "kubelet",
        command: pathOf("kubelet"),
        args: [
          "--config=/var/lib/kubelet/config.yaml",
          `--kubeconfig=${await kubeconfigOf(cluster, "node", `system:node:${name}`, "system:nodes")}`,
          `--hostname-override=${name}`,
          ...(address ? [`--node-ip=${address}`] : []),
          "--v=2",
        ],
        logFile: join(directory, "kubelet.log"),
        enter,
      }),
    );
    const identity = await cluster.authority.issue("kubelet-client", { commonName: "e2e-admin" });
    const kubeletServer = new AdminClient({ port, authority: cluster.trustFile, identity });
    const ready = () =>
      kubelet.until("Ready", async () => {
        await kubeletServer.get("/healthz");
        await expectReady(cluster, name);
      });
    await ready();
    return {
      name,
      containerd,
      kubelet,
      scheduler,
      controllerManager,
      kubeletServer,
      enter,
      path: (onNode) => machine.path(onNode),
      ready,
      startAgent: (flags = {}) =>
        AgentProcess.start(cluster, {
          nodeName: name,
          enter,
          flags: {
            "runtime-endpoint": `unix://${containerd.socket}`,
            "reporting-in-tree-plugins": "*",
            ...flags,
          },
        }),
      logOf: (pod, container) => readLog(machine, pod, container),
      writeStaticPod: (each, pod) => {
        const file = machine.path(join(staticPodDirectory, `${each}.json`));
        // Whole at once. The kubelet reads no names with a dot in front.
        const fresh = join(dirname(file), `.${each}`);
        if (!pod) return rmSync(file, { force: true });
        writeFileSync(fresh, JSON.stringify(pod));
        renameSync(fresh, file);
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function expectReady(cluster: ControlPlane, name: string): Promise<void> {
  const { status, spec } = await cluster.admin.get(`/api/v1/nodes/${name}`);
  const ready = status.conditions?.find(({ type }: ApiObject) => type === "Ready");
  if (ready?.status !== "True") throw new Error(`the Node is not Ready: ${ready?.message}`);
  const taints: string[] = (spec.taints ?? []).map(({ key }: ApiObject) => key);
  const own = taints.filter((key) => key.startsWith("node.kubernetes.io/"));
  if (own.length > 0) throw new Error(`the Node is tainted ${own}`);
}

async function controllers(cluster: ControlPlane): Promise<Child> {
  const kubeconfig = await kubeconfigOf(cluster, "controller-manager", "system:kube-controller-manager");
  return new Child({
    name: "kube-controller-manager",
    command: pathOf("kubeControllerManager"),
    args: [
      `--kubeconfig=${kubeconfig}`,
      "--leader-elect=false",
      "--secure-port=0",
      "--use-service-account-credentials=true",
      // What pods trust the API server by.
      `--root-ca-file=${cluster.trustFile}`,
      "--allocate-node-cidrs=false",
      "--node-monitor-period=1s",
      "--kube-api-qps=100",
      "--kube-api-burst=200",
    ],
    logFile: join(cluster.directory, "kube-controller-manager.log"),
  });
}

/** kube-scheduler with the rights of its own user; the caller starts it. */
export async function schedulerOf(cluster: ControlPlane): Promise<Child> {
  const kubeconfig = await kubeconfigOf(cluster, "scheduler", "system:kube-scheduler");
  return new Child({
    name: "kube-scheduler",
    command: pathOf("kubeScheduler"),
    args: [`--kubeconfig=${kubeconfig}`, "--leader-elect=false", "--secure-port=0"],
    logFile: join(cluster.directory, "kube-scheduler.log"),
  });
}

async function kubeconfigOf(
  { authority, port, trustFile, directory }: ControlPlane,
  file: string,
  commonName: string,
  organization?: string,
): Promise<string> {
  const identity = await authority.issue(file, { commonName, ...(organization ? { organization } : {}) });
  return writeKubeconfig(join(directory, `${file}.kubeconfig`), {
    port,
    authority: trustFile,
    user: { "client-certificate": identity.certificate, "client-key": identity.key },
  });
}

function readLog(machine: Machine, { metadata }: ApiObject, container: string): string {
  const { namespace, name, uid } = metadata;
  const directory = machine.path(join("/var/log/pods", `${namespace}_${name}_${uid}`, container));
  const files = readdirSync(directory).sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
  const lines = files.flatMap((file) =>
    readFileSync(join(directory, file), "utf8").split("\n").filter(Boolean),
  );
  // "<time> stdout F <text>": https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
  return lines.map((line) => `${line.split(" ").slice(3).join(" ")}\n`).join("");
}
