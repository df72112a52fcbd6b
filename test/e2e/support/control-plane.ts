import { appendFileSync, copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { eventually } from "@nodekeeper/testing/until";
import { AdminClient, type ApiObject } from "./admin-client.ts";
import { AuditLog } from "./audit-log.ts";
import { Authority, type KeyPair } from "./certificates.ts";
import { Child } from "./child.ts";
import { makeRunDirectory, removeEndedRuns } from "./ended-runs.ts";
import { Etcd } from "./etcd.ts";
import { freePort } from "./free-port.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { Kubectl } from "./kubectl.ts";
import { pathOf } from "./parts.ts";
import { TokenSigner } from "./service-account-tokens.ts";

const auditPolicy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata" }],
};

/** What a kubelet says of its machine. */
export const kubeletCapacity = { cpu: "4", memory: "8Gi", pods: "110" } as const;

export interface ControlPlaneOptions {
  /** Default: the current one. */
  apiServer?: "kubeApiServer" | "oldKubeApiServer";
  /** Flags of the API server beside the usual ones. */
  flags?: readonly string[];
  /** Whether pods get the token of their account, for which a controller manager has to run. Default false. */
  accounts?: boolean;
}

export interface ControlPlane {
  /** Everything it writes is under here, and goes with `stop`. */
  readonly directory: string;
  readonly port: number;
  readonly authority: Authority;
  /** PEM file of the authorities that those who call the API server trust. */
  readonly trustFile: string;
  readonly etcd: Etcd;
  readonly apiServer: Child;
  readonly admin: AdminClient;
  readonly kubectl: Kubectl;
  readonly audit: AuditLog;
  readonly tokens: TokenSigner;
  /** Resolves when the API server, started or started again, is ready. */
  ready(): Promise<void>;
  /** Makes a Node as a kubelet registers its own: in one request, with a status that has no recorded owner. */
  addNode(name: string): Promise<ApiObject>;
  /**
   * Replaces the serving certificate of the running API server by one of another authority, and adds that authority to
   * `trustFile`. Returns it once the certificate is served.
   */
  swapServingCertificate(): Promise<Authority>;
  /** Stops everything and removes the directory. KEEP_E2E=1 in the environment keeps it. */
  stop(): Promise<void>;
}

/** Starts etcd and kube-apiserver on free ports of loopback, with TLS, RBAC and an audit log, in a temporary directory. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  await removeEndedRuns();
  const directory = makeRunDirectory();
  const cleanups: Array<() => unknown> = [
    () => process.env.KEEP_E2E || rmSync(directory, { recursive: true, force: true }),
  ];
  const stop = async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  };
  try {
    const authority = await Authority.create(directory, "ca");
    const serving = await issueServing(authority);
    const identity = await authority.issue("admin", {
      commonName: "e2e-admin",
      organization: "system:masters",
    });
    const tokens = new TokenSigner(directory);
    const etcd = await Etcd.start(directory);
    cleanups.push(() => etcd.stop());

    const port = await freePort();
    const audit = new AuditLog(join(directory, "audit.log"));
    const policyFile = join(directory, "audit-policy.json");
    writeFileSync(policyFile, JSON.stringify(auditPolicy));
    const apiServer = new Child({
      name: "kube-apiserver",
      command: pathOf(options.apiServer ?? "kubeApiServer"),
      logFile: join(directory, "kube-apiserver.log"),
      args: [
        `--etcd-servers=${etcd.url}`,
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        `--secure-port=${port}`,
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        `--cert-dir=${directory}`,
        `--tls-cert-file=${serving.certificate}`,
        `--tls-private-key-file=${serving.key}`,
        `--client-ca-file=${authority.certificate}`,
        // For logs, exec and port-forward.
        `--kubelet-client-certificate=${identity.certificate}`,
        `--kubelet-client-key=${identity.key}`,
        // Names of nodes are in no DNS.
        "--kubelet-preferred-address-types=InternalIP",
        "--authorization-mode=Node,RBAC",
        `--service-account-issuer=${TokenSigner.issuer}`,
        `--service-account-key-file=${tokens.keyFile}`,
        `--service-account-signing-key-file=${tokens.keyFile}`,
        // Without a controller manager nothing makes the default accounts that it waits for.
        ...(options.accounts ? [] : ["--disable-admission-plugins=ServiceAccount"]),
        `--audit-log-path=${audit.path}`,
        `--audit-policy-file=${policyFile}`,
        "--profiling=false",
        ...(options.flags ?? []),
      ],
    });
    cleanups.push(() => apiServer.stop());
    const trustFile = join(directory, "trust.crt");
    copyFileSync(authority.certificate, trustFile);
    const admin = new AdminClient({ port, authority: trustFile, identity });
    const kubeconfig = writeKubeconfig(join(directory, "admin.kubeconfig"), {
      port,
      authority: trustFile,
      user: { "client-certificate": identity.certificate, "client-key": identity.key },
    });
    const ready = async () => {
      await apiServer.until("ready", () => admin.get("/readyz"));
      // Its own objects come a moment after readiness at the first start.
      await apiServer.until("seeded", () =>
        admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:discovery"),
      );
    };
    apiServer.start();
    await ready();
    return {
      directory,
      port,
      authority,
      trustFile,
      etcd,
      apiServer,
      admin,
      kubectl: new Kubectl(kubeconfig, directory),
      audit,
      tokens,
      ready,
      addNode: (name) => admin.create("/api/v1/nodes?fieldManager=kubelet", nodeOfKubelet(name)),
      swapServingCertificate: async () => {
        const successor = await Authority.create(directory, "ca-2");
        appendFileSync(trustFile, readFileSync(successor.certificate));
        await issueServing(successor);
        await eventuallyServes(port, "ca-2");
        return successor;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function nodeOfKubelet(name: string): ApiObject {
  const status = { capacity: kubeletCapacity, allocatable: kubeletCapacity };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "kubernetes.io/hostname": name } },
    status,
  };
}

function issueServing(authority: Authority): Promise<KeyPair> {
  const alternativeNames = ["IP:127.0.0.1", "DNS:localhost"];
  return authority.issue("apiserver", { commonName: "kube-apiserver", alternativeNames });
}

// The server looks at its files when they change, and once a minute.
async function eventuallyServes(port: number, issuer: string): Promise<void> {
  await eventually(async () => {
    const found = await issuerOf(port);
    if (found !== issuer) throw new Error(`still serves a certificate of ${found}`);
  });
}

function issuerOf(port: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      const { issuer } = socket.getPeerCertificate();
      resolve(String(issuer.CN));
      socket.destroy();
    });
    socket.once("error", reject);
  });
}
