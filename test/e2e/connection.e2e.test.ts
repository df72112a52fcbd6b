import { copyFileSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { customNodeResource, status } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentProcess, type AgentProcessOptions } from "./support/agent-process.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { controlPlaneParts, missingParts } from "./support/parts.ts";
import { SteeredPlugin } from "./support/steered-plugin.ts";
import { TcpProxy } from "./support/tcp-proxy.ts";

const missing = missingParts(...controlPlaneParts);
const cnrs = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources";
const gpus = "example.com/gpus";
// The API server remembers for so long that a token was good.
const TOKEN_CACHE_MS = 10_000;

describe.skipIf(missing)("the agent's connection to a real API server", () => {
  let cluster: ControlPlane;
  let proxy: TcpProxy;
  const ends: Array<() => Promise<void>> = [];

  beforeAll(async () => {
    cluster = await startControlPlane();
    proxy = await TcpProxy.start(cluster.port);
  });

  afterAll(async () => {
    for (const end of ends.splice(0).reverse()) await end();
    await proxy?.stop();
    await cluster?.stop();
  });

  async function startAgent(nodeName: string, options: Partial<AgentProcessOptions> = {}) {
    await cluster.addNode(nodeName);
    const agent = await AgentProcess.start(cluster, { nodeName, ...options });
    ends.push(() => agent.child.stop());
    const plugin = new SteeredPlugin(agent, "gpus", [report(1)]);
    ends.push(() => plugin.stop());
    const published = async () =>
      (await cluster.admin.get(`${cnrs}/${nodeName}`)).status?.resources?.capacity?.[gpus];
    const shows = (value: number) => eventually(async () => expect(await published()).toBe(String(value)));
    const disturb = () =>
      cluster.admin.patch(`${cnrs}/${nodeName}/status`, {
        status: { resources: { capacity: { [gpus]: "999" } } },
      });
    // About the published object; slices of devices, pods and the Node are watched besides.
    const asked = (verb: string, since: number) =>
      cluster.audit
        .requests({ user: agent.user, since })
        .filter(
          ({ requestURI }) => requestURI.includes(nodeName) && requestURI.includes("/customnoderesources"),
        )
        .filter((each) => each.verb === verb);
    await agent.ready();
    await shows(1);
    return { agent, plugin, shows, disturb, asked };
  }

  it("continues watching from where it was when connections are cut in mid-stream", async () => {
    const { shows, disturb, asked, agent } = await startAgent("worker-cut", { port: proxy.port });
    // Lists follow the first writes.
    await eventually(() => expect(asked("watch", 0)).not.toEqual([]));
    const since = Date.now();
    for (let round = 1; round <= 3; round++) {
      const events = disturbSlowly("worker-cut");
      expect(proxy.cut()).toBeGreaterThan(0);
      await events;
      await disturb();
      await shows(1);
      await eventually(() => expect(asked("watch", since).length).toBeGreaterThanOrEqual(round));
      // The answer to its last write should not be cut too: trying that again would hide a watch that is lost.
      await sleep(500);
    }
    expect(asked("list", since)).toEqual([]);
    const watches = asked("watch", since);
    expect(watches.length).toBeLessThanOrEqual(12);
    for (const { requestURI } of watches) expect(requestURI).toMatch(/resourceVersion=[1-9]/);
    await agent.child.stop();
  });

  it("lists again after its version was compacted away (410), and takes back what changed meanwhile", async () => {
    const { agent, shows, disturb, asked } = await startAgent("worker-expired", { port: proxy.port });
    await eventually(() => expect(asked("watch", 0)).not.toEqual([]));
    proxy.refuse();
    await disturb();
    await cluster.apiServer.kill();
    await cluster.etcd.compact();
    cluster.apiServer.start();
    await cluster.ready();
    const since = Date.now();
    proxy.resume();
    await shows(1);
    // Each of its watches waits for its own next try.
    await eventually(() =>
      expect(agent.logged().filter(({ reason }) => reason === "expired")).not.toEqual([]),
    );
    await eventually(() => expect(asked("list", since).length).toBeGreaterThan(0));
    await eventually(() => expect(asked("watch", since).length).toBeGreaterThan(1));
    await agent.ready();
    await agent.child.stop();
  });

  it("takes a renewed token before the old one expires, without a refused request", async () => {
    // Long enough for an agent to start on a busy machine.
    const lifetime = 30;
    const { agent, plugin, shows } = await startAgent("worker-token", { tokenLifetime: lifetime });
    const startedAt = Date.now();
    const refusals = () =>
      cluster.audit.requests({ since: startedAt }).filter((each) => each.responseStatus?.code === 401);
    agent.renewToken(lifetime * 2);
    await sleep(lifetime * 1_000 + TOKEN_CACHE_MS);
    plugin.say(report(2));
    await shows(2);
    expect(refusals()).toEqual([]);

    // No client renews this one in time.
    await sleep(Math.max(0, startedAt + lifetime * 2_000 + TOKEN_CACHE_MS + 2_000 - Date.now()));
    plugin.say(report(3));
    await eventually(async () => {
      const { ok, text } = await agent.readiness();
      expect(text).toContain("401");
      expect(ok).toBe(false);
    });
    expect(agent.child.log).toContain('"errCode":"unauthenticated"');
    agent.renewToken(3_600);
    await shows(3);
    await agent.ready();
    await agent.child.stop();
  });

  it("follows a swap of the server's certificate and of its own", async () => {
    const authority = join(cluster.directory, "agent-trust.crt");
    copyFileSync(cluster.trustFile, authority);
    const identity = () =>
      cluster.authority.issue("agent", {
        commonName: "system:serviceaccount:nodekeeper:nodekeeper",
        organization: "system:serviceaccounts",
      });
    const { certificate, key } = await identity();
    const user = { "client-certificate": certificate, "client-key": key };
    const options = { authority, user, port: proxy.port };
    const { agent, plugin, shows, asked } = await startAgent("worker-tls", options);
    const credential = () =>
      asked("patch", 0).at(-1)?.user.extra?.["authentication.kubernetes.io/credential-id"]?.[0];
    const before = credential();
    expect(before).toContain("X509SHA256=");

    await identity();
    // Its files are looked at every few seconds.
    await sleep(6_000);
    plugin.say(report(2));
    await shows(2);
    await eventually(() => expect(credential()).not.toBe(before));

    const successor = await cluster.swapServingCertificate();
    proxy.cut();
    plugin.say(report(3));
    await eventually(() =>
      expect(agent.child.log).toContain("server certificate checked with the authorities of"),
    );
    copyFileSync(successor.certificate, `${authority}.new`);
    await rename(`${authority}.new`, authority);
    await shows(3);
    await agent.ready();
    await agent.child.stop();
  });

  // Changes that the agent has no part in, so that its watch has something in flight.
  async function disturbSlowly(name: string): Promise<void> {
    for (let count = 0; count < 10; count++) {
      await cluster.admin.patch(`${cnrs}/${name}`, {
        metadata: { annotations: { "example.com/count": String(Date.now()) } },
      });
    }
  }
});

function report(value: number) {
  return customNodeResource(status("resources", { capacity: { [gpus]: String(value) } }));
}
