import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import { AgentProcess } from "./support/agent-process.ts";
import { Child } from "./support/child.ts";
import { Containerd } from "./support/containerd.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { CriClient } from "./support/cri-client.ts";
import { containerdParts, controlPlaneParts, missingParts, pathOf } from "./support/parts.ts";
import { TestKubelet } from "./support/test-kubelet.ts";

const NODE = "worker-1";
const NAME = "go-eviction";
const pods = "/api/v1/namespaces/default/pods";
const budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const missing =
  process.getuid?.() !== 0 || missingParts(...controlPlaneParts, "goEviction", ...containerdParts);

/** What the Go plugin reads from its file. */
interface Pressure {
  metType?: "NOT_MET" | "SOFT_MET" | "HARD_MET";
  scope?: string;
  observed?: number;
  threshold?: number;
  condition?: string;
  forced?: string[];
}

describe.skipIf(missing)("eviction on a real kube-apiserver, with a Go plugin and pods on containerd", () => {
  let cluster: ControlPlane;
  let containerd: Containerd;
  let cri: CriClient;
  let kubelet: TestKubelet;
  let agent: AgentProcess;
  let plugin: Child;
  let file: string;

  beforeAll(async () => {
    cluster = await startControlPlane();
    await cluster.addNode(NODE);
    containerd = await Containerd.start(join(cluster.directory, "containerd"), "containerd");
    cri = new CriClient(containerd);
    // Ends at SIGTERM, as a good container does.
    const command = ["/bin/sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.1; done"];
    kubelet = new TestKubelet(cluster, cri, NODE, () => command);
    agent = await AgentProcess.start(cluster, {
      nodeName: NODE,
      flags: {
        "runtime-endpoint": `unix://${containerd.socket}`,
        "eviction-sync-period": "1s",
        "eviction-burst": "1",
        "eviction-failed-eviction-pause": "4s",
        "eviction-release-margin": "10s",
        "eviction-killer-rules": "reclaimed_cores=containerStop",
        "eviction-condition-transition-period": "2s",
      },
    });
    await agent.ready();
    file = join(cluster.directory, "pressure.json");
    say({});
    plugin = new Child({
      name: NAME,
      command: pathOf("goEviction"),
      args: [`--name=${NAME}`, `--directory=${agent.pluginDirectory}`, `--file=${file}`],
      logFile: join(cluster.directory, "go-eviction.log"),
    });
    plugin.start();
    await eventually(async () => expect(await agent.metric("nodekeeper_eviction_plugins")).toBe(1));
  });

  afterEach(async () => {
    say({});
    const { items } = await cluster.admin.get(pods);
    for (const { metadata } of items as ApiObject[]) {
      await cluster.admin.delete(`${pods}/${metadata.name}?gracePeriodSeconds=1`).catch(() => {});
    }
    await eventually(async () => expect((await cluster.admin.get(pods)).items).toEqual([]));
    await cluster.admin.delete(budgets).catch(() => {});
  });

  afterAll(async () => {
    await plugin?.stop();
    await agent?.child.stop();
    await kubelet?.stop();
    cri?.close();
    await containerd?.stop();
    await cluster?.stop();
  });

  function say(pressure: Pressure): void {
    writeFileSync(`${file}.new`, JSON.stringify({ metType: "NOT_MET", ...pressure }));
    renameSync(`${file}.new`, file);
  }

  const pressure: Pressure = { metType: "HARD_MET", scope: "memory", observed: 0.93, threshold: 0.8 };

  /** Makes a pod and waits until its containers run; the plugin takes the one with the largest request first. */
  async function addPod(name: string, memory: string, changes: ApiObject = {}): Promise<string> {
    const resources = { requests: { memory } };
    const { metadata } = await cluster.admin.create(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, ...changes.metadata },
      spec: {
        nodeName: NODE,
        terminationGracePeriodSeconds: 5,
        containers: [{ name: "app", image: "app", resources }],
        ...changes.spec,
      },
    });
    await eventually(async () =>
      expect((await cluster.admin.get(`${pods}/${name}`)).status.phase).toBe("Running"),
    );
    return metadata.uid;
  }

  async function addBudget(name: string, status: ApiObject): Promise<void> {
    await cluster.admin.create(budgets, {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name },
      spec: { minAvailable: 1, selector: { matchLabels: { app: name } } },
    });
    await cluster.admin.patch(`${budgets}/${name}/status`, { status });
  }

  const allowing = (disruptionsAllowed: number) => ({
    observedGeneration: 1,
    disruptionsAllowed,
    currentHealthy: 1 + disruptionsAllowed,
    desiredHealthy: 1,
    expectedPods: 2,
  });

  const namesThere = async () =>
    (await cluster.admin.get(pods)).items.map(({ metadata }: ApiObject) => metadata.name).sort();

  async function eventsOf(name: string, reason: string): Promise<ApiObject[]> {
    const { items } = await cluster.admin.get("/api/v1/namespaces/default/events");
    return items.filter((event: ApiObject) => event.involvedObject.name === name && event.reason === reason);
  }

  const evictionsOf = (name: string) =>
    cluster.audit
      .requests({ user: agent.user })
      .filter(
        ({ objectRef, verb }) =>
          objectRef?.subresource === "eviction" && verb === "create" && objectRef.name === name,
      );

  it("evicts the pod that the plugin names, confirms it by its containers' end, and can explain it", async () => {
    const uid = await addPod("big", "64Mi");
    await addPod("small", "16Mi");
    say(pressure);
    await eventually(async () => expect(await namesThere()).toEqual(["small"]));
    say({});
    await eventually(async () => expect(await eventsOf("big", "Evicted")).toHaveLength(1));
    expect((await eventsOf("big", "Evicted"))[0]).toMatchObject({
      message: "Evicted by go-eviction: memory 0.93 > threshold 0.8 (node worker-1)",
      involvedObject: { uid },
      type: "Warning",
    });
    await eventually(async () =>
      expect(await agent.metric("nodekeeper_eviction_ended_total", '{outcome="terminated"}')).toBe(1),
    );
    await eventually(() => {
      const logged = agent.logged().find(({ msg }) => msg === "evicted pod was deleted");
      expect(logged).toMatchObject({ pod: { name: "big" }, plugin: NAME });
    });

    // The steps come with the next round's record.
    await eventually(async () => {
      const page = await agent.command("explain", "pod", "default/big");
      if (process.env.SHOW_EXPLAIN) console.log(page);
      expect(page).toContain("memory 0.93 > threshold 0.8");
      expect(page).not.toMatch(/another client|not by Nodekeeper/);
      expect(page).toMatch(/POST eviction: accepted.*container app exited with code \d+.*pod deleted/s);
    });
    const candidate = join(cluster.directory, "candidate.yaml");
    writeFileSync(
      candidate,
      "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\neviction:\n  cooldown: 0s\n  dryRunPlugins: [go-eviction]\n",
    );
    const replayed = await agent.command("replay", "--config", candidate);
    if (process.env.SHOW_EXPLAIN) console.log(replayed);
    expect(replayed).toMatch(/- evicted +default\/big: the plugin is in dry run/);
  });

  it("a budget that forbids: beside it the free pod is evicted; one that allows lets the pod go", async () => {
    await addBudget("guard", allowing(0));
    const guarded = { metadata: { labels: { app: "guard" } } };
    await addPod("guarded", "64Mi", guarded);
    await addPod("free", "16Mi");
    // The plugin names the largest pod that it is offered: the guarded one, until its eviction is refused.
    say(pressure);
    await eventually(async () => expect(await namesThere()).toEqual(["guarded"]));
    say({});
    // A request is in the audit log once it has been answered.
    await eventually(() => {
      expect(evictionsOf("guarded")[0]?.responseStatus?.code).toBe(429);
      expect(evictionsOf("free").map(({ responseStatus }) => responseStatus?.code)).toEqual([201]);
    });
    await eventually(async () =>
      expect((await eventsOf("guarded", "EvictionFailed")).length).toBeGreaterThan(0),
    );
    expect((await eventsOf("guarded", "EvictionFailed"))[0]!.message).toContain("default/guard");
    await cluster.admin.patch(`${budgets}/guard/status`, { status: allowing(1) });
    say(pressure);
    await eventually(async () => expect(await namesThere()).toEqual([]));
  });

  it("a budget that is not observed yet is waited for as the server asks, and no other pod is taken meanwhile", async ({
    skip,
  }) => {
    // Generation 1, never observed.
    await addBudget("fresh", { ...allowing(1), observedGeneration: 0 });
    await addPod("fresh", "64Mi", { metadata: { labels: { app: "fresh" } } });
    await addPod("other", "16Mi");
    say(pressure);
    await eventually(() => expect(evictionsOf("fresh").length).toBeGreaterThan(0));
    expect(evictionsOf("fresh")[0]?.responseStatus?.code).toBe(429);
    await cluster.admin.patch(`${budgets}/fresh/status`, { status: allowing(1) });
    // The server asks for 10 s, and after a second refusal other pods are considered.
    const askedAt = Date.parse(evictionsOf("fresh")[0]!.requestReceivedTimestamp);
    if (Date.now() - askedAt > 9_000)
      skip("the machine was too slow to observe the budget before the second request");
    await eventually(async () => expect(await namesThere()).toEqual(["other"]));
    say({});
    await eventually(() =>
      expect(evictionsOf("fresh").map(({ responseStatus }) => responseStatus?.code)).toEqual([429, 201]),
    );
  });

  it("a pod recreated under its name at the wrong moment is left alone", async () => {
    const first = await addPod("web-0", "64Mi");
    // The kubelet hangs, so that the pod stays terminating for as long as the test wants.
    kubelet.ignored.add("web-0");
    say(pressure);
    await eventually(() => expect(evictionsOf("web-0")).toHaveLength(1));
    // As a StatefulSet does, the moment the old one is deleted.
    await cluster.admin.delete(`${pods}/web-0?gracePeriodSeconds=0`);
    say({ ...pressure, metType: "NOT_MET" });
    kubelet.ignored.delete("web-0");
    const second = await addPod("web-0", "64Mi");
    expect(second).not.toBe(first);
    await eventually(async () =>
      expect(await agent.metric("nodekeeper_eviction_under_way", '{phase="sent"}')).toBe(0),
    );
    const { metadata } = await cluster.admin.get(`${pods}/web-0`);
    expect(metadata.uid).toBe(second);
    expect(metadata.deletionTimestamp).toBeUndefined();
    expect(evictionsOf("web-0")).toHaveLength(1);
  });

  it("replay shows which pods another policy would have chosen instead", async () => {
    await addPod("first", "16Mi", { metadata: { labels: { "example.com/keep": "" } } });
    await addPod("second", "16Mi");
    say({ forced: ["default/first", "default/second"] });
    // One a round, the least important first: all else being equal it goes by the name.
    await eventually(async () => expect(await namesThere()).toEqual([]));
    const candidate = join(cluster.directory, "keep.yaml");
    writeFileSync(
      candidate,
      `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
eviction:
  dryRunPlugins: []
  burst: 1
  cooldown: 0s
  limits: { perNode: 0, perOwner: 0 }
  conditionTransitionPeriod: 2s
  failedEvictionPause: 4s
  releaseMargin: 10s
  skip: { labels: [example.com/keep] }
`,
    );
    const page = await agent.command("replay", "--config", candidate, "--since", "30m");
    if (process.env.SHOW_EXPLAIN) console.log(page);
    expect(page).toMatch(/- evicted +default\/first: .*label example\.com\/keep/);
    expect(page).toMatch(/\+ evicted +default\/second/);
  });

  it("containers are stopped past the API server where it is configured", async () => {
    await addPod("stopped", "64Mi", {
      metadata: { annotations: { "katalyst.kubewharf.io/qos_level": "reclaimed_cores" } },
    });
    say(pressure);
    await eventually(async () => {
      const page = await agent.command("explain", "pod", "default/stopped");
      expect(page).toMatch(/StopContainer app, grace period 5 s.*container app exited.*stopped app/s);
    });
    say({});
    // The pod is put down, not deleted.
    expect(await namesThere()).toEqual(["stopped"]);
  });

  it("a condition taints the Node, beside what others taint, and the taint goes with it", async () => {
    const node = `/api/v1/nodes/${NODE}`;
    const taints = async () =>
      ((await cluster.admin.get(node)).spec.taints ?? []).map(
        ({ key, effect }: ApiObject) => `${key}:${effect}`,
      );
    const foreign = { key: "example.com/maintenance", effect: "NoSchedule" };
    await cluster.admin.patch(node, { spec: { taints: [foreign] } });
    say({ ...pressure, condition: "Squeeze" });
    await eventually(async () =>
      expect(await taints()).toEqual([
        "example.com/maintenance:NoSchedule",
        "nodekeeper.dev/Squeeze:NoSchedule",
      ]),
    );
    await cluster.admin.patch(node, { spec: { taints: [foreign] } });
    await eventually(async () => expect(await taints()).toContain("nodekeeper.dev/Squeeze:NoSchedule"));
    await eventually(async () => {
      const page = await agent.command("explain", "node");
      if (process.env.SHOW_EXPLAIN) console.log(page);
      expect(page).toMatch(
        /nodekeeper\.dev\/Squeeze:NoSchedule\n {2}set by {5}go-eviction: memory 0\.93 > threshold 0\.8\n.*taint nodekeeper\.dev\/Squeeze:NoSchedule added: go-eviction reports memory 0\.93 > threshold 0\.8\n/s,
      );
    });
    say({});
    // An agent without a stored state removes none in its first minute.
    await eventually(async () => expect(await taints()).toEqual(["example.com/maintenance:NoSchedule"]));
  });

  it("no critical pod goes, whatever the plugin wants", async () => {
    await addPod("vital", "64Mi", { spec: { priorityClassName: "system-node-critical" } });
    say({ ...pressure, forced: ["default/vital"] });
    const rounds = (await agent.metric("nodekeeper_eviction_rounds_total", '{result="done"}')) ?? 0;
    await eventually(async () =>
      expect(await agent.metric("nodekeeper_eviction_rounds_total", '{result="done"}')).toBeGreaterThan(
        rounds + 2,
      ),
    );
    expect(await namesThere()).toEqual(["vital"]);
  });
});
