import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  customNodeResource,
  type DevicePool,
  metadata,
  node,
  serveDeviceDriver,
  spec,
  status,
} from "@nodekeeper/sdk";
import { DraKubelet } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { startEvictionPlugin } from "../support/eviction-plugin.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { rightOf } from "./support/audit-log.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { freePort } from "./support/free-port.ts";
import { optionalRbacFile, rbacFile } from "./support/nodekeeper-install.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";
import { SteeredPlugin } from "./support/steered-plugin.ts";

const missing = missingParts(...controlPlaneParts);
const cnrs = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources";
const clusterRolePath = "/apis/rbac.authorization.k8s.io/v1/clusterroles/nodekeeper";

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

const roles: ApiObject[] = parseAllDocuments(readFileSync(rbacFile, "utf8"))
  .map((document) => document.toJS())
  .filter(({ kind }) => kind === "ClusterRole");
const rulesOf = (name: string): Rule[] => roles.find(({ metadata }) => metadata.name === name)!.rules;
const clusterRules = rulesOf("nodekeeper");
const eventRules = rulesOf("nodekeeper-events");
const pods = "/api/v1/namespaces/default/pods";

/** One slice, then two, then one again. */
async function* togglingDevices(signal: AbortSignal): AsyncGenerator<DevicePool[]> {
  for (let count = 100; ; count = 300 - count) {
    yield [{ devices: Array.from({ length: count }, (_, at) => ({ name: `device-${at}` })) }];
    await sleep(700, undefined, { signal });
  }
}

function rightsOf(rules: readonly Rule[]): string[] {
  return rules.flatMap(({ resources, verbs }) =>
    resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
  );
}

describe.skipIf(missing)("the rights that deploy/rbac.yaml gives", () => {
  let cluster: ControlPlane;
  const ends: Array<() => Promise<void>> = [];

  beforeAll(async () => {
    cluster = await startControlPlane();
  });

  // Also after a case that failed: the agents, plugins and rights that it left would fail those after it.
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  afterAll(async () => {
    await cluster?.stop();
  });

  /** Gives a role its rules back at the end of a case, however it ends. */
  function restoring(path: string, rules: readonly Rule[]): AsyncDisposable {
    return { [Symbol.asyncDispose]: async () => void (await cluster.admin.patch(path, { rules })) };
  }

  async function startAgent(
    nodeName: string,
    more: Record<string, string> = {},
  ): Promise<{ agent: AgentProcess; plugin: SteeredPlugin }> {
    await cluster.addNode(nodeName);
    const flags = {
      "reporting-plugin-grace-period": "1s",
      "eviction-sync-period": "1s",
      "eviction-failed-eviction-pause": "2s",
      ...more,
    };
    const agent = await AgentProcess.start(cluster, { nodeName, flags });
    ends.push(() => agent.child.stop());
    const plugin = new SteeredPlugin(agent, "everything", everything());
    ends.push(() => plugin.stop());
    const evictor = await startEvictionPlugin(agent.pluginDirectory, "everybody");
    ends.push(() => evictor.stop());
    evictor.evictPods = (_offered, offers) => ({
      evictPods: offers.map((pod) => ({ pod, reason: "everybody goes", forceEvict: true })),
    });
    await addPod(nodeName);
    const driver = serveDeviceDriver({
      name: "toggling.example.com",
      socketDir: agent.pluginDirectory,
      devices: togglingDevices,
    });
    ends.push(() => driver.stop());
    return { agent, plugin };
  }

  /** A pod that wants to be evicted; nothing ends it, as where the kubelet is away. */
  async function addPod(nodeName: string): Promise<void> {
    await cluster.admin.create(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: nodeName },
      spec: { nodeName, containers: [{ name: "app", image: "app" }] },
    });
  }

  it("are all used, and suffice", async () => {
    const { agent, plugin } = await startAgent("worker-all");
    await agent.ready();
    await eventually(async () =>
      expect((await cluster.admin.get(`${cnrs}/worker-all`)).spec.taints).toHaveLength(1),
    );
    // The same Event twice: the first is created, the second counted up.
    for (let round = 1; round <= 2; round++) {
      await plugin.stop();
      await eventually(async () => {
        const { items } = await cluster.admin.get("/api/v1/namespaces/default/events");
        const ofNode = items.filter(({ involvedObject }: ApiObject) => involvedObject.kind === "Node");
        expect(ofNode.map(({ count }: ApiObject) => count)).toEqual([round]);
      });
      if (round === 1) {
        const again = new SteeredPlugin(agent, "everything", everything());
        await eventually(() => expect(again.served.registration.state).toBe("registered"));
        await again.stop();
      }
    }
    // A slice is made, another goes, and one is changed each time the driver changes its mind.
    await eventually(() => {
      const rights = cluster.audit
        .requests({ user: agent.user })
        .filter(({ objectRef }) => objectRef)
        .map(rightOf);
      expect(rights).toContain("delete resourceslices");
      expect(rights).toContain("update resourceslices");
      expect(rights).toContain("create pods/eviction");
    });
    const requests = cluster.audit.requests({ user: agent.user });
    expect(requests.filter(({ responseStatus }) => responseStatus?.code === 403)).toEqual([]);
    const used = new Set(requests.filter(({ objectRef }) => objectRef).map(rightOf));
    // An apply that makes an object is told as a patch; the case below proves the right.
    used.add("create customnoderesources");
    expect([...used].sort()).toEqual(rightsOf([...clusterRules, ...eventRules]).sort());
  });

  it.each(rightsOf(clusterRules))(
    "without the right to %s, the readiness check names it until it is given",
    async (right) => {
      const [verb = "", resource = ""] = right.split(" ");
      const reduced = clusterRules.map((rule) =>
        rule.resources.includes(resource)
          ? { ...rule, verbs: rule.verbs.filter((each) => each !== verb) }
          : rule,
      );
      await using _rest = restoring(clusterRolePath, clusterRules);
      await cluster.admin.patch(clusterRolePath, { rules: reduced.filter(({ verbs }) => verbs.length > 0) });
      const { agent } = await startAgent(`worker-${right.replaceAll(/[ /]/g, "-")}`);
      const refusal = `cannot ${verb} resource "${resource}"`;
      await agent.child.until("unready for the right that is missing", async () => {
        const { ok, text } = await agent.readiness();
        expect(text).toContain(refusal);
        expect(ok).toBe(false);
      });
      await eventually(() => {
        const errors = agent.logged().map(({ err, message }) => err ?? message);
        expect(errors).toContainEqual(expect.stringContaining(refusal));
      });
      await cluster.admin.patch(clusterRolePath, { rules: clusterRules });
      await agent.ready();
    },
  );

  it("those that only some settings need are all used: strict registration, deletion of pods, claims", async () => {
    const directory = mkdtempSync(join(tmpdir(), "nkr-"));
    ends.push(async () => rmSync(directory, { recursive: true }));
    const { agent } = await startAgent("worker-strict", {
      "eviction-strict": "true",
      "eviction-killer": "deletion",
      "devices-kubelet-plugin-enabled": "true",
      "devices-kubelet-plugin-registry-directory": join(directory, "registry"),
      "devices-kubelet-plugin-cdi-directory": join(directory, "cdi"),
    });
    const driver = serveDeviceDriver({
      name: "claims.example.com",
      socketDir: agent.pluginDirectory,
      async *devices() {
        yield [{ devices: [{ name: "device-0" }] }];
      },
      prepare: ({ devices }) => devices.map((device) => ({ ...device, edits: { env: { DEVICE: "0" } } })),
      unprepare: () => {},
    });
    ends.push(() => driver.stop());
    const kubelet = new DraKubelet(join(directory, "registry"));
    ends.push(async () => kubelet[Symbol.dispose]());
    const claim = await cluster.admin.create("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", {
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name: "rights" },
      spec: {
        devices: {
          requests: [
            { name: "req", exactly: { deviceClassName: "any", allocationMode: "ExactCount", count: 1 } },
          ],
        },
      },
    });
    const reference = { namespace: "default", name: "rights", uid: claim.metadata.uid };
    const prepared = async () =>
      (await kubelet.prepare("claims.example.com", reference))[reference.uid]!.error;
    expect(await prepared()).toContain("Nodekeeper is not allowed to get resourceclaims");
    const optional = parseAllDocuments(readFileSync(optionalRbacFile, "utf8"))
      .map((document) => document.toJS() as ApiObject)
      .filter(({ kind, rules }) => kind === "ClusterRole" && !rules[0].nonResourceURLs)
      // device-status.e2e.test.ts
      .filter(({ metadata }) => metadata.name !== "nodekeeper-device-status");
    const account = await cluster.admin.create("/api/v1/namespaces/default/serviceaccounts", {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: "pressure" },
    });
    const owner = { namespace: "default", name: "pressure", uid: account.metadata.uid };
    // Without the rights nothing can be reviewed, so no plugin counts.
    await eventually(() => expect(agent.child.log).toContain("everybody has no token"));
    const plugin = await startEvictionPlugin(agent.pluginDirectory, "known");
    ends.push(() => plugin.stop());
    plugin.token = cluster.tokens.sign(owner, 3_600);
    await eventually(() => expect(plugin.refusal).toContain('cannot create resource "tokenreviews"'));

    await cluster.kubectl.run("apply", "-f", optionalRbacFile);
    await eventually(async () => expect(await prepared()).toContain("the ResourceClaim is not allocated"));
    // It is reviewed, and known to have no right to evict.
    await eventually(() => expect(plugin.refusal).toContain("may not create pods/eviction"));
    expect(plugin.registered).toBe(false);
    await cluster.kubectl.run(
      "create",
      "clusterrolebinding",
      "pressure",
      "--clusterrole=nodekeeper",
      "--serviceaccount=default:pressure",
    );
    await eventually(() => expect(plugin.registered).toBe(true));
    plugin.evictPods = (_offered, offers) => ({
      evictPods: offers.map((pod) => ({ pod, reason: "it may", forceEvict: true })),
    });
    await eventually(async () =>
      expect((await cluster.admin.get(`${pods}/worker-strict`)).metadata.deletionTimestamp).toBeDefined(),
    );
    const rights = rightsOf(optional.flatMap(({ rules }) => rules as Rule[]));
    // A request is in the audit log once it has been answered.
    await eventually(() => {
      const used = cluster.audit
        .requests({ user: agent.user })
        .filter(({ responseStatus, objectRef }) => objectRef && (responseStatus?.code ?? 500) < 300)
        .map(rightOf);
      for (const right of rights) expect(used).toContain(right);
    });
  });

  it("let the status server ask who reads it beyond loopback, and what they may", async () => {
    const { authority, kubectl } = cluster;
    const pair = await authority.issue("status-server", {
      commonName: "worker-remote",
      alternativeNames: ["IP:127.0.0.1"],
    });
    const port = await freePort();
    await startAgent("worker-remote", {
      "server-address": `0.0.0.0:${port}`,
      "server-tls-cert-file": pair.certificate,
      "server-tls-private-key-file": pair.key,
    });
    await kubectl.run("delete", "--ignore-not-found", "clusterrolebinding", "nodekeeper-reviews");
    const account = await cluster.admin.create("/api/v1/namespaces/default/serviceaccounts", {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: "prometheus" },
    });
    const token = cluster.tokens.sign(
      { namespace: "default", name: "prometheus", uid: account.metadata.uid },
      3_600,
    );
    const server = { port, ca: authority.certificate };
    const get = (path: string, bearer?: string) =>
      askOverTls({ ...server, path, headers: bearer ? { authorization: `Bearer ${bearer}` } : {} });
    // As a browser does.
    const signIn = () => askOverTls({ ...server, path: "/", method: "POST", body: `token=${token}` });

    await eventually(async () => expect((await get("/livez")).status).toBe(200));
    expect(await get("/metrics")).toMatchObject({ status: 401 });
    // Without the rights of nodekeeper-reviews no token can be reviewed, and the answer names the right.
    await eventually(async () =>
      expect((await get("/metrics", token)).text).toContain('cannot create resource \\"tokenreviews\\"'),
    );
    await kubectl.run("apply", "-f", optionalRbacFile);
    await eventually(async () => {
      const { status, text } = await get("/metrics", token);
      expect(text).toContain("system:serviceaccount:default:prometheus may not get /metrics");
      expect(status).toBe(403);
    });
    expect(await signIn()).toMatchObject({
      status: 403,
      text: expect.stringContaining("system:serviceaccount:default:prometheus may not get /nodekeeper/"),
    });
    const reader = ["--clusterrole=nodekeeper-metrics-reader", "--serviceaccount=default:prometheus"];
    await kubectl.run("create", "clusterrolebinding", "prometheus-nodekeeper", ...reader);
    await eventually(async () => {
      const { status, text } = await get("/metrics", token);
      expect(text).toContain("nodekeeper_build_info");
      expect(status).toBe(200);
    });
    // Which system:discovery would allow every account.
    expect(await get("/api/v1/plugins", token)).toMatchObject({ status: 403 });
    const all = ["--clusterrole=nodekeeper-status-reader", "--serviceaccount=default:prometheus"];
    await kubectl.run("create", "clusterrolebinding", "reader-nodekeeper", ...all);
    await eventually(async () => expect(await get("/api/v1/plugins", token)).toMatchObject({ status: 200 }));
    const cookie = await until("the account may sign in", async () => (await signIn()).cookie);
    for (const path of ["/", "/api/v1/plugins"])
      expect(await askOverTls({ ...server, path, headers: { cookie } })).toMatchObject({ status: 200 });
    expect(await get("/metrics", "made-up")).toMatchObject({ status: 401 });
  });

  it("without the rights to Events, the log names them, and the agent is as ready as before", async () => {
    const rolePath = "/apis/rbac.authorization.k8s.io/v1/clusterroles/nodekeeper-events";
    await using _rest = restoring(rolePath, eventRules);
    await cluster.admin.patch(rolePath, { rules: [] });
    const { agent, plugin } = await startAgent("worker-silent");
    await agent.ready();
    await eventually(async () =>
      expect((await cluster.admin.get(`${cnrs}/worker-silent`)).status).toBeDefined(),
    );
    // Its end is an Event.
    await plugin.stop();
    await eventually(() => expect(agent.child.log).toContain('cannot create resource \\"events\\"'));
    await agent.ready();
  });
});

interface TlsRequest {
  port: number;
  path: string;
  /** PEM file of the authority that signed the server's certificate. */
  ca: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

interface TlsAnswer {
  status?: number;
  text: string;
  /** The first that the answer sets, as a browser sends it back. */
  cookie?: string;
}

function askOverTls({ ca, body, ...request }: TlsRequest): Promise<TlsAnswer> {
  const options = { host: "127.0.0.1", ...request, ca: readFileSync(ca), agent: false };
  return new Promise((resolve, reject) => {
    const sent = https.request(options, async (response) => {
      let text = "";
      for await (const chunk of response) text += chunk;
      const [cookie] = response.headers["set-cookie"]?.[0]?.split(";") ?? [];
      resolve({
        ...(response.statusCode ? { status: response.statusCode } : {}),
        text,
        ...(cookie ? { cookie } : {}),
      });
    });
    sent.on("error", reject).end(body);
  });
}

/** Something of each kind that a plugin may report. */
function everything() {
  const resources = { capacity: { "example.com/gpus": "8" } };
  return [
    customNodeResource(
      status("resources", resources),
      spec("taints", [{ key: "nodekeeper.dev/hot", effect: "NoSchedule", qosLevel: "shared_cores" }]),
    ),
    node(metadata("labels", { "example.com/gpu-model": "g1" }), status("capacity", resources.capacity)),
  ];
}
