import { readFileSync } from "node:fs";
import https from "node:https";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentProcess } from "./support/agent-process.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import {
  installNodekeeper,
  optionalRbacFile,
  policiesFile,
  serviceAccount,
} from "./support/nodekeeper-install.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";

const missing = missingParts(...controlPlaneParts);
const OWN = "worker-own";
const OTHER = "worker-other";
const nodes = "/api/v1/nodes";
const pods = "/api/v1/namespaces/default/pods";
const cnrs = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources";
const slices = "/apis/resource.k8s.io/v1/resourceslices";

interface Write {
  method: string;
  path: string;
  body?: object;
  contentType?: string;
}

/** What the agent of a node writes, with the name of that node in place. */
const writes: Record<string, (node: string) => Write> = {
  "taints and labels of a Node": (node) => merge(`${nodes}/${node}`, { metadata: { labels: { a: node } } }),
  "extended resources of a Node": (node) =>
    merge(`${nodes}/${node}/status`, { status: { capacity: { "example.com/a": "1" } } }),
  "a CustomNodeResource": (node) =>
    apply(`${cnrs}/${node}`, { ...cnrOf(node), spec: { nodeResourceProperties: [] } }),
  "the status of a CustomNodeResource": (node) =>
    apply(`${cnrs}/${node}/status`, { ...cnrOf(node), status: { resources: { capacity: { a: "1" } } } }),
  "a new ResourceSlice": (node) => post(slices, sliceOf(node)),
  "the end of a ResourceSlice": (node) => ({ method: "DELETE", path: `${slices}/old-slice-of-${node}` }),
  "an eviction": (node) =>
    post(`${pods}/pod-of-${node}/eviction`, {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: `pod-of-${node}`, namespace: "default" },
    }),
  "a deletion of a pod": (node) => ({ method: "DELETE", path: `${pods}/second-of-${node}` }),
};

const refusal = new RegExp(
  `the agent on node ${OWN} may not (write \\w+|evict pods|delete pods) of node ${OTHER}`,
);

describe.skipIf(missing)("the policies of deploy/admission-policies.yaml", () => {
  let cluster: ControlPlane;
  let uid: string;
  const uids: Record<string, string> = {};

  beforeAll(async () => {
    cluster = await startControlPlane();
    uid = await installNodekeeper(cluster);
    await cluster.kubectl.run("apply", "-f", optionalRbacFile, "-f", policiesFile);
    for (const node of [OWN, OTHER]) {
      uids[node] = (await cluster.addNode(node)).metadata.uid;
      await cluster.admin.create(slices, sliceOf(node, `old-slice-of-${node}`));
      for (const name of [`pod-of-${node}`, `second-of-${node}`]) {
        await cluster.admin.create(pods, {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name, namespace: "default" },
          spec: { nodeName: node, containers: [{ name: "app", image: "app" }] },
        });
      }
    }
    // The API server takes a moment to compile each policy, and to learn of pods: until then it refuses, or does not ask.
    for (const name of ["taints and labels of a Node", "an eviction", "a deletion of a pod"]) {
      const write = dryRun(writes[name]!(OTHER));
      await eventually(async () => {
        expect((await send(write, tokenOf(OWN))).message).toMatch(refusal);
        expect((await send(write, tokenOf(OTHER))).status).toBeLessThan(300);
      });
    }
  });

  afterAll(() => cluster?.stop());

  function tokenOf(node: string | undefined): string {
    const bound = node ? { name: node, uid: uids[node]! } : undefined;
    return cluster.tokens.sign({ ...serviceAccount, uid }, 3_600, bound);
  }

  function send({ method, path, body, contentType }: Write, token: string) {
    const options = {
      host: "127.0.0.1",
      port: cluster.port,
      ca: readFileSync(cluster.trustFile),
      agent: false as const,
      method,
      path,
      headers: { authorization: `Bearer ${token}`, "content-type": contentType ?? "application/json" },
    };
    return new Promise<{ status: number; message: string }>((resolve, reject) => {
      const request = https.request(options, async (response) => {
        let text = "";
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, message: JSON.parse(text).message ?? "" });
      });
      request.on("error", reject).end(body ? JSON.stringify(body) : undefined);
    });
  }

  it.each(Object.entries(writes))("keep %s to the node's own agent", async (_, write) => {
    const foreign = await send(write(OTHER), tokenOf(OWN));
    expect(foreign.message).toMatch(refusal);
    expect(foreign.status).toBe(422);
    const unbound = await send(write(OTHER), tokenOf(undefined));
    expect(unbound.status).toBe(422);
    const own = await send(write(OTHER), tokenOf(OTHER));
    expect(own).toMatchObject({ status: expect.toSatisfy((status: number) => status < 300) });
  });

  it("keep pools beyond the node to the drivers that they name, of which there are none as they are", async () => {
    const slice = sliceOf(OWN, "beyond") as { spec: object };
    const write = post(slices, { ...slice, spec: { ...slice.spec, nodeName: undefined, allNodes: true } });
    const { status, message } = await send(write, tokenOf(OWN));
    expect([status, message]).toEqual([422, expect.stringContaining("may not write resourceslices")]);
  });

  it("do not concern other clients", async () => {
    await cluster.admin.patch(`${nodes}/${OTHER}`, { metadata: { labels: { by: "an-operator" } } });
  });

  it("leave the agent itself everything it does", async () => {
    const agent = await AgentProcess.start(cluster, { nodeName: OWN });
    try {
      await agent.ready();
      await eventually(async () =>
        expect((await cluster.admin.get(`${cnrs}/${OWN}`)).spec.nodeResourceProperties).not.toEqual([]),
      );
    } finally {
      await agent.child.stop();
    }
  });
});

function dryRun({ path, ...write }: Write): Write {
  return { ...write, path: `${path}${path.includes("?") ? "&" : "?"}dryRun=All` };
}

function merge(path: string, body: object): Write {
  return { method: "PATCH", path, body, contentType: "application/merge-patch+json" };
}

function apply(path: string, body: object): Write {
  const contentType = "application/apply-patch+yaml";
  return { method: "PATCH", path: `${path}?fieldManager=nodekeeper&force=true`, body, contentType };
}

function post(path: string, body: object): Write {
  return { method: "POST", path, body };
}

function cnrOf(node: string): object {
  return {
    apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
    kind: "CustomNodeResource",
    metadata: { name: node },
  };
}

function sliceOf(node: string, name = `slice-of-${node}`): object {
  return {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name },
    spec: {
      driver: "example.com",
      nodeName: node,
      pool: { name: node, generation: 1, resourceSliceCount: 1 },
      devices: [{ name: "a" }],
    },
  };
}
