import { randomBytes } from "node:crypto";
import { readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConditionType, ThresholdMetType } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { type KubeObject, nodes } from "@nodekeeper/core/kube";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { StateDatabase } from "../packages/agent/src/state/index.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { hardPressure, pick, startEvictionPlugin } from "./support/eviction-plugin.ts";
import { fillUp } from "./support/full-database.ts";
import { clientAs } from "./support/other-client.ts";

// What operators are answered about pods that left the node, whoever removed them. The whole agent in front of the
// embedded API server; the pods' statuses are what a kubelet or the scheduler writes.
let cluster: TestCluster;
let agent: RunningAgent;

beforeEach(async () => {
  cluster = await startCluster({ removePodsAfterGrace: false, bookmarkIntervalMs: 100 });
});
afterEach(async () => {
  await agent?.stop();
  await cluster.stop();
});

async function command(...args: string[]): Promise<string> {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const output = { write, isTerminal: false, columns: 120 };
  expect(await runCli(["node", "nodekeeper", ...args], output)).toBe(0);
  return text;
}

async function explain(...args: string[]): Promise<string> {
  const page = await command("explain", ...args, "--server", agent.address);
  // Times differ from run to run.
  return page
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "<time>")
    .replaceAll(/\+\d+\.\d s/g, "+<s>");
}

const pod = (name: string) => cluster.server.store.get("pods", name, "default")!;
const diskHot = {
  conditionType: ConditionType.NODE_CONDITION,
  conditionName: "DiskHot",
  effects: ["NoSchedule"],
  metCondition: true,
};
/** Writes a pod as another client would. */
function update(name: string, change: (pod: KubeObject & { status: Record<string, unknown> }) => void): void {
  const copy = structuredClone(pod(name)) as KubeObject & { status: Record<string, unknown> };
  change(copy);
  cluster.server.store.put(copy);
}
const exited = (name: string, exitCode: number, reason: string, id = `${name}-1`) => ({
  name,
  state: {
    terminated: { exitCode, reason, containerID: `containerd://${id}`, finishedAt: new Date().toISOString() },
  },
});
const remove = (name: string) => cluster.server.store.delete("pods", name, "default");
const untilSeen = (name: string) =>
  until(`${name} is recorded`, async () => {
    const { history } = await agent.api(`eviction/explain?pod=default/${name}`);
    return history !== undefined;
  });
/** Waits for a bookmark of the pods. On a busy machine, an earlier deletion has an interval, not a time. */
const untilWatched = () =>
  until("a bookmark", async () =>
    /watch_events_total{resource="pods",type="BOOKMARK"} [1-9]/.test(await agent.metrics()),
  );
/** Waits until the agent has written that the pod left. */
const untilLeft = (name: string) =>
  until(`${name} is recorded as deleted`, async () => {
    const { history } = await agent.api(`eviction/explain?pod=default/${name}`);
    return history?.leftAt != null;
  });

describe("explain pod", () => {
  it("of a pod that another client deleted shows when, that it was not Nodekeeper, and how its containers exited", async () => {
    cluster.addPod("web");
    agent = await startAgent(cluster);
    await untilSeen("web");
    update("web", (web) => {
      web.metadata.deletionTimestamp = new Date(Date.now() + 30_000).toISOString();
      web.metadata.deletionGracePeriodSeconds = 30;
    });
    await until("the request is recorded", async () => {
      const { history } = await agent.api("eviction/explain?pod=default/web");
      return history.ending.deletion !== null;
    });
    await untilWatched();
    // As the kubelet does when the containers have stopped.
    update("web", (web) => {
      web.metadata.deletionTimestamp = new Date().toISOString();
      web.metadata.deletionGracePeriodSeconds = 0;
      web.status.containerStatuses = [exited("app", 143, "Error")];
    });
    remove("web");
    await untilLeft("web");
    expect(await explain("pod", "default/web")).toMatch(
      /\n\nPod deleted at <time>, not by Nodekeeper\. Container app exited with code 143\.\n\nWhat happened\n {2}<time> +\+<s> {2}deletion requested, grace period 30 s\n {2}<time> +\+<s> {2}container app exited with code 143\n {2}<time> +\+<s> {2}pod deleted\n/,
    );
  });

  it("of a pod that others removed names the component and the reason", async () => {
    // By the name of the pod: its status at the end, and what is said of it.
    const cases: [string, Record<string, unknown>, string][] = [
      [
        "preempted",
        {
          conditions: [
            {
              type: "DisruptionTarget",
              status: "True",
              reason: "PreemptionByScheduler",
              message: "default-scheduler: preempting to accommodate a higher priority pod",
              lastTransitionTime: new Date().toISOString(),
            },
          ],
        },
        "Preempted by the scheduler: default-scheduler: preempting to accommodate a higher priority pod.",
      ],
      [
        "evicted",
        { conditions: [{ type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" }] },
        "Evicted through the Eviction API by another client.",
      ],
      [
        "tainted",
        {
          conditions: [
            {
              type: "DisruptionTarget",
              status: "True",
              reason: "DeletionByTaintManager",
              message: "Taint manager: deleting due to NoExecute taint",
            },
          ],
        },
        "Deleted by the taint manager: Taint manager: deleting due to NoExecute taint.",
      ],
      [
        "kubelet-evicted",
        {
          phase: "Failed",
          reason: "Evicted",
          message: "The node was low on resource: memory. ",
          conditions: [{ type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet" }],
        },
        "Evicted by the kubelet: The node was low on resource: memory.",
      ],
      [
        "shutdown",
        {
          phase: "Failed",
          reason: "Terminated",
          message: "Pod was terminated in response to imminent node shutdown.",
        },
        "Terminated by the kubelet at node shutdown: Pod was terminated in response to imminent node shutdown.",
      ],
      [
        "rejected",
        { phase: "Failed", reason: "OutOfcpu", message: "Node didn't have enough resource: cpu" },
        "Failed (OutOfcpu): Node didn't have enough resource: cpu.",
      ],
    ];
    for (const [name] of cases) cluster.addPod(name);
    agent = await startAgent(cluster);
    await untilWatched();
    for (const [name, status] of cases) {
      await untilSeen(name);
      update(name, (changed) => Object.assign(changed.status, status));
      remove(name);
    }
    for (const [name, , expected] of cases) {
      await untilLeft(name);
      expect(await explain("pod", `default/${name}`)).toContain(
        `\n\nPod deleted at <time>, not by Nodekeeper. ${expected}\n`,
      );
    }
  });

  it("of a pod that was disrupted names the client that set the condition, if managedFields show one", async () => {
    const condition = {
      ...{ type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler" },
      ...{ message: "default-scheduler: preempting", lastTransitionTime: new Date().toISOString() },
    };
    const ownerOf = (manager: string) => ({
      ...{ manager, operation: "Update", apiVersion: "v1", subresource: "status", fieldsType: "FieldsV1" },
      fieldsV1: { "f:status": { "f:conditions": { 'k:{"type":"DisruptionTarget"}': {} } } },
    });
    const cases = [
      ["one", ["kube-scheduler"], "; condition set by kube-scheduler\n"],
      ["two", ["kube-scheduler", "kubectl-edit"], "preempting\n"],
    ] as const;
    for (const [name] of cases) cluster.addPod(name);
    agent = await startAgent(cluster);
    for (const [name, managers, expected] of cases) {
      await untilSeen(name);
      update(name, (changed) => {
        changed.status.conditions = [condition];
        changed.metadata.managedFields = managers.map(ownerOf);
      });
      await eventually(async () =>
        expect(await explain("pod", `default/${name}`)).toContain(
          `Preempted by the scheduler: default-scheduler: preempting${expected.replace(/^preempting/, "")}`,
        ),
      );
    }
  });

  it("of a pod that was deleted while no agent ran has the interval", async () => {
    const uid = cluster.addPod("web");
    cluster.addPod("db");
    agent = await startAgent(cluster);
    await untilSeen("web");
    await agent.stop();
    remove("web");
    // Another one of its name, as a StatefulSet makes it.
    cluster.addPod("web");
    agent = await startAgent(cluster);
    await untilLeft("web");
    const page = await explain("pod", "default/web");
    expect(page).toContain(`Pod default/web  (${uid})`);
    expect(page).toContain("Pod deleted between <time> and <time>, not by Nodekeeper.\n");
    expect(page).toContain(
      `Other recorded pods of this name (explain them by UID): ${pod("web").metadata.uid}\n`,
    );
    expect(await explain("pod", "default/db")).toContain("Not evicted: no plugin requested it.\n");
  });

  it("of a pod whose container ran out of memory counts the kills, and each is one Event on the pod", async () => {
    cluster.addPod("web", {
      spec: { containers: [{ name: "app", image: "app", resources: { limits: { memory: "64Mi" } } }] },
    });
    agent = await startAgent(cluster);
    await untilSeen("web");
    const kill = (id: string) =>
      update("web", (web) => {
        const [before] = (web.status.containerStatuses as { state: unknown }[] | undefined) ?? [];
        const status = exited("app", 137, "OOMKilled", id);
        web.status.containerStatuses = [{ ...status, lastState: before?.state }];
      });
    const events = () =>
      cluster.server.store.list("events").filter(({ reason }) => reason === "ContainerOOMKilled");
    kill("first");
    await until("the Event", () => events().length === 1);
    expect(events()[0]).toMatchObject({
      message: "Container app was OOM-killed (exit code 137). Memory limit: 64Mi. (node worker-1)",
      type: "Warning",
      involvedObject: { kind: "Pod", name: "web", uid: pod("web").metadata.uid },
    });
    // An agent that is started again knows what it reported, and finds what happened meanwhile.
    await agent.stop();
    kill("second");
    agent = await startAgent(cluster);
    await until(
      "it is counted",
      () => (events()[0] as unknown as { count: number }).count + events().length === 3,
    );
    const expected =
      "Not evicted: no plugin requested it. Container app was OOM-killed 2 times, last at <time>.\n";
    await until("the record", async () => (await explain("pod", "default/web")).includes(expected));
    expect(await explain("pod", "default/web")).toContain(
      "  container app was OOM-killed (exit code 137, memory limit 64Mi)\n",
    );
    expect(await agent.metrics()).toMatch(/^nodekeeper_eviction_oom_kills_total 1$/m);
    const line = agent.logLines.find(({ msg }) => msg === "container OOM-killed");
    expect(line).toMatchObject({
      pod: { namespace: "default", name: "web" },
      container: "app",
      limit: "64Mi",
    });
  });
});

describe("a decision while the disk is full", () => {
  it("is a line of the log at once, and reaches the record when there is space again", async () => {
    const opened = vi.spyOn(StateDatabase, "open");
    // A round is larger than what is left in the pages of its tables.
    const noise = Array.from({ length: 400 }, (_, at) => [`label-${at}`, randomBytes(30).toString("hex")]);
    cluster.addPod("web", { metadata: { labels: Object.fromEntries(noise) } });
    agent = await startAgent(cluster);
    const database = opened.mock.results.at(-1)!.value as StateDatabase;
    opened.mockRestore();
    await untilSeen("web");
    const makeSpace = fillUp(database);
    const plugin = await startEvictionPlugin(agent.pluginDir, "pressure");
    plugin.top = pick(["web"]);
    plugin.threshold = { ...hardPressure };
    await until("its eviction", () => cluster.evictions().length > 0);
    plugin.threshold = {};
    expect(agent.logLines.find(({ msg }) => msg === "pod selected for eviction")).toMatchObject({
      ...{ round: 1, pod: { namespace: "default", name: "web" }, podUid: pod("web").metadata.uid },
      ...{ plugin: "pressure", kind: "forced", scope: "memory", reason: "memory 0.93 > threshold 0.8" },
      ...{ observedValue: 0.93, thresholdValue: 0.8, operator: "greaterThan" },
      ...{ order: 1, rank: 1, candidates: 1, gracePeriodSeconds: null },
    });
    remove("web");
    await until("a round after it", async () =>
      /ended_total{outcome="terminated"} 1/.test(await agent.metrics()),
    );
    const failures = () =>
      agent.logLines.filter(({ msg }) => msg?.startsWith("failed to write the records of eviction"));
    expect(failures()).toHaveLength(1);
    makeSpace();
    await until("the record", async () =>
      (await explain("pod", "default/web")).includes("\n\nEvicted at <time> (round 1), pod deleted after"),
    );
    await plugin.stop();
  });
});

describe("explain node", () => {
  it("goes by the configuration in force, also where no round was recorded since it changed", async () => {
    const file = join(cluster.directory, "config.yaml");
    const configure = (period: string, effects: string) => {
      const eviction = `{ conditionTransitionPeriod: ${period}, taintEffects: [${effects}] }`;
      const text = `apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\neviction: ${eviction}\n`;
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
    };
    configure("5m", "NoSchedule");
    agent = await startAgent(cluster, {}, file);
    const plugin = await startEvictionPlugin(agent.pluginDir, "ts-evict");
    const metType = ThresholdMetType.SOFT_MET;
    plugin.threshold = { ...hardPressure, metType, evictionScope: "disk", condition: diskHot };
    await until("the condition", async () => /NoSchedule.* until +5m after/s.test(await explain("node")));
    configure("7m", "PreferNoSchedule");
    await eventually(async () =>
      expect(await explain("node")).toMatch(
        /taints +none: NoSchedule not allowed.* until +7m after it clears/s,
      ),
    );
    await plugin.stop();
  });

  it("shows which plugin set a taint, why, since when and until when, and so do its Events", async () => {
    const nodeEvents = () =>
      cluster.server.store
        .list("events")
        .filter(({ involvedObject }) => (involvedObject as { kind: string }).kind === "Node")
        .map(({ message }) => message);
    const flags = { evictionConditionTransitionPeriod: "2s" };
    agent = await startAgent(cluster, flags);
    // Once it has read the Node.
    await eventually(async () =>
      expect(await explain("node")).toBe(
        "Node worker-1\n\nNo condition or taint is set by Nodekeeper.\n\nRecords go back to <time>.\n",
      ),
    );
    const plugin = await startEvictionPlugin(agent.pluginDir, "ts-evict");
    // An agent with a stored state may remove taints at once; one without waits for a minute.
    plugin.threshold = { metType: hardPressure.metType! };
    await until("a state", async () =>
      /nodekeeper_eviction_rounds_total{result="done"} [1-9]/.test(await agent.metrics()),
    );
    plugin.threshold = {};
    await agent.stop();
    agent = await startAgent(cluster, flags);
    plugin.threshold = {
      ...hardPressure,
      metType: ThresholdMetType.SOFT_MET,
      evictionScope: "disk",
      observedValue: 95,
      unit: "%",
      thresholdValue: 90,
      condition: diskHot,
    };
    await until("the taint", () => cluster.node().spec.taints?.length === 1);
    await eventually(async () =>
      expect((await explain("node")).replace(/\(for \d+s\)/, "(for <s>)")).toMatch(
        /^Node worker-1\n\nCondition DiskHot of the Node\n {2}taints {5}nodekeeper\.dev\/DiskHot:NoSchedule\n {2}set by {5}ts-evict: disk 95% > threshold 90%\n {2}since {6}<time> \(for <s>\)\n {2}until {6}2s after it clears\n/,
      ),
    );
    plugin.threshold = {};
    await until("no taint", async () => !cluster.node().spec.taints?.length, {
      explain: () => cluster.node().spec,
    });
    await eventually(async () =>
      expect(await explain("node")).toMatch(
        /^Node worker-1\n\nNo condition or taint is set by Nodekeeper\.\n\nWhat happened\n {2}<time> {2}condition DiskHot set: ts-evict reports disk 95% > threshold 90%\n {2}<time> {2}taint nodekeeper\.dev\/DiskHot:NoSchedule added: ts-evict reports disk 95% > threshold 90%\n {2}<time> {2}condition DiskHot cleared: ts-evict has not reported it for its transition period; last: disk 95% > threshold 90%\n {2}<time> {2}taint nodekeeper\.dev\/DiskHot:NoSchedule removed: no longer reported\. Last: ts-evict reports disk 95% > threshold 90%\n/,
      ),
    );
    await until("both Events", () => nodeEvents().length === 2);
    expect(nodeEvents().sort()).toEqual([
      "Taint nodekeeper.dev/DiskHot:NoSchedule added: ts-evict reports disk 95% > threshold 90%. It is removed 2s after the condition clears.",
      "Taint nodekeeper.dev/DiskHot:NoSchedule removed: no longer reported. Last: ts-evict reports disk 95% > threshold 90%.",
    ]);
    expect(agent.logLines.find(({ msg }) => msg === "condition set")).toMatchObject({
      ...{
        plugin: "ts-evict",
        condition: "DiskHot",
        effects: ["NoSchedule"],
        cause: "disk 95% > threshold 90%",
      },
    });
    await plugin.stop();
  });
});

it("shows which client removed a taint of the agent, as managedFields name it, and so do the timeline and the log", async () => {
  agent = await startAgent(cluster);
  const plugin = await startEvictionPlugin(agent.pluginDir, "ts-evict");
  plugin.threshold = { ...hardPressure, condition: diskHot };
  const taints = () => cluster.node().spec.taints ?? [];
  await until("the taint", () => taints().length === 1);
  await until("the record", async () => (await explain("node")).includes("added"));
  const user = await clientAs(cluster, "kubectl-taint");
  const foreign = { key: "example.com/maintenance", effect: "NoSchedule" };
  await user.mergePatch(nodes, "worker-1", { spec: { taints: [foreign] } });
  await until("it is restored", () => taints().length === 2);
  const lines =
    /taint nodekeeper\.dev\/DiskHot:NoSchedule removed by kubectl-taint \(Update at <time>\)\n.*taint nodekeeper\.dev\/DiskHot:NoSchedule restored after its removal by kubectl-taint \(Update at <time>\): ts-evict reports memory 0\.93 > threshold 0\.8\n/s;
  await eventually(async () => expect(await explain("node")).toMatch(lines));
  const timeline = await command("timeline", "--server", agent.address);
  expect(timeline).toMatch(/taint nodekeeper\.dev\/DiskHot:NoSchedule removed by kubectl-taint \(Update at /);
  expect(agent.logLines.find(({ msg }) => msg === "another client changed the agent's taint")).toMatchObject({
    ...{ taint: "nodekeeper.dev/DiskHot:NoSchedule", what: "removed" },
    by: expect.stringMatching(/^kubectl-taint \(Update at .*Z\)$/),
  });
  // The last taint of the list leaves no owner in managedFields.
  await user.mergePatch(nodes, "worker-1", { spec: { taints: null } });
  await eventually(async () =>
    expect(await explain("node")).toMatch(
      /taint nodekeeper\.dev\/DiskHot:NoSchedule removed by another client\n/,
    ),
  );
  user.close();
  await plugin.stop();
});

describe("records of a node", () => {
  it("are the same from its state directory, with the agent and without, and from an exported file", async () => {
    for (const name of ["evicted", "by-hand", "there"]) cluster.addPod(name);
    agent = await startAgent(cluster);
    const plugin = await startEvictionPlugin(agent.pluginDir, "pressure");
    plugin.top = pick(["evicted"]);
    plugin.threshold = { ...hardPressure, condition: diskHot };
    await until("its eviction", () => cluster.evictions().length > 0);
    plugin.threshold = {};
    for (const name of ["evicted", "by-hand"]) remove(name);
    await untilLeft("by-hand");
    await until("its end", async () =>
      (await explain("pod", "default/evicted")).includes("\n  ended      evicted"),
    );
    await plugin.stop();

    const questions = [
      ...["evicted", "by-hand", "there"].map((name) => ["explain", "pod", `default/${name}`]),
      ["rounds", "--since", "1h"],
      ["explain", "node"],
    ];
    // What changes with every round is left out.
    const answers = async (...place: string[]) => {
      const pages = await Promise.all(questions.map((words) => command(...words, ...place)));
      return pages.map((page) => page.replaceAll(/ {2}(since|until) .*\n/g, ""));
    };
    const file = join(cluster.directory, "records.jsonl");
    const expected = await answers("--server", agent.address);
    expect(expected.join("")).toMatch(/Evicted at .*not by Nodekeeper.*Not evicted: .*Condition DiskHot/s);
    expect(await answers("--from", agent.stateDir)).toEqual(expected);
    writeFileSync(file, await command("rounds", "--records", "--server", agent.address));
    expect(await answers("--from", file)).toEqual(expected);
    await agent.stop();
    const stored = readdirSync(agent.stateDir);
    expect(await answers("--from", agent.stateDir)).toEqual(expected);
    expect(readdirSync(agent.stateDir)).toEqual(stored);
    writeFileSync(file, await command("rounds", "--records", "--from", agent.stateDir));
    expect(await answers("--from", file)).toEqual(expected);
    const candidate = join(cluster.directory, "candidate.yaml");
    writeFileSync(
      candidate,
      "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\neviction: {dryRunPlugins: ['*']}\n",
    );
    expect(await command("replay", "--config", candidate, "--from", agent.stateDir)).toContain(
      "1 victim recorded, 0 with this policy",
    );
  });
});
