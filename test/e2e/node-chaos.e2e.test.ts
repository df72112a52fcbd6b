import { setTimeout as sleep } from "node:timers/promises";
import { PodLifecycleClient } from "@nodekeeper/sdk";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "../../packages/testing/src/runtime/seeded-random.ts";
import { hardPressure, startEvictionPlugin, type TestEvictionPlugin } from "../support/eviction-plugin.ts";
import type { ApiObject } from "./support/admin-client.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { FollowedLog } from "./support/followed-log.ts";
import { type RuntimeLife, RuntimeRecord } from "./support/node/runtime-record.ts";
import { untilSameView } from "./support/node/same-view.ts";
import { deployment, deploymentsPath, podsPath } from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode, startNode } from "./support/node.ts";

const SECONDS = Number(process.env.E2E_NODE_CHAOS_SECONDS ?? 0);
const SEED = Number(process.env.E2E_NODE_CHAOS_SEED ?? Date.now() % 1_000_000);
const names = ["red", "green"] as const;
const REPLICAS = 3;

// 2.x: its events reach every subscriber, so that the record of the runtime has them all.
describe.skipIf(missingForNode("newContainerd") || SECONDS === 0)(
  "the agent killed at random during rolling updates",
  () => {
    let cluster: ControlPlane;
    let node: ClusterNode;
    let agent: AgentProcess;
    let plugin: TestEvictionPlugin;
    let client: PodLifecycleClient;
    let log: FollowedLog;
    let record: RuntimeRecord;

    beforeAll(async () => {
      cluster = await startControlPlane();
      node = await startNode(cluster, { containerd: "newContainerd" });
      record = RuntimeRecord.start(cluster, node);
      agent = await node.startAgent({
        "eviction-sync-period": "1s",
        "eviction-burst": "1",
        "eviction-limits-per-node": "0",
        "eviction-limits-per-owner": "0",
      });
      await agent.ready();
      client = new PodLifecycleClient({ socket: agent.apiSocket });
      log = new FollowedLog(client);
      await eventually(() => expect(log.snapshots).toBe(1));
      plugin = await startEvictionPlugin(agent.pluginDirectory, "choosy");
      plugin.top = (_offered, pods) => ({ targetPods: pods.slice(0, 1) });
    });

    afterAll(async () => {
      await plugin?.stop();
      await log?.stop();
      client?.close();
      await agent?.child.stop();
      await record?.stop();
      await node?.stop();
      await cluster?.stop();
    });

    it(
      `has a log equal to the runtime's truth, and evicts no pod twice (seed ${SEED})`,
      async () => {
        const random = seededRandom(SEED);
        for (const name of names) await cluster.admin.create(deploymentsPath, deployment(name, REPLICAS));
        const endsAt = Date.now() + SECONDS * 1_000;
        const isOver = () => Date.now() > endsAt;
        plugin.threshold = hardPressure;
        const [outages, updates] = await Promise.all([
          killRepeatedly(agent, random, isOver),
          updateRepeatedly(cluster, random, isOver),
        ]);
        plugin.threshold = {};
        await agent.ready();
        await untilRolledOut(cluster);
        await untilSameView(node, client);

        await eventually(() => expectTruth(log, record.lives(), outages));
        expect(log.snapshots).toBe(1);
        const evictions = evictionsOf(cluster, agent);
        expect([...evictions].filter(([, times]) => times > 1)).toEqual([]);
        expect(evictions.size).toBeGreaterThan(0);
        console.log(
          `${SECONDS} s, seed ${SEED}: ${record.lives().size} containers and sandboxes, ${log.events.length} events, ` +
            `${outages.length} kills of the agent, ${updates} updates, ${evictions.size} evictions`,
        );
      },
      SECONDS * 1_000 + 900_000,
    );
  },
);

interface Outage {
  from: number;
  to: number;
}

async function killRepeatedly(
  agent: AgentProcess,
  random: () => number,
  isOver: () => boolean,
): Promise<Outage[]> {
  const outages: Outage[] = [];
  while (!isOver()) {
    await sleep(2_000 + random() * 8_000);
    const from = Date.now();
    for (let isStarting = true; isStarting; ) {
      await agent.child.kill();
      await sleep(random() * 3_000);
      agent.child.start();
      // Every other time it is killed again as it starts.
      isStarting = random() < 0.5;
      if (isStarting) await sleep(random() * 2_000);
    }
    // It has looked at the runtime when it is ready, not when it is started.
    await agent.ready();
    outages.push({ from, to: Date.now() });
  }
  return outages;
}

async function updateRepeatedly(
  { admin }: ControlPlane,
  random: () => number,
  isOver: () => boolean,
): Promise<number> {
  let updates = 0;
  while (!isOver()) {
    const name = names[updates % names.length]!;
    const labels = { version: String(++updates) };
    await admin.patch(`${deploymentsPath}/${name}`, { spec: { template: { metadata: { labels } } } });
    await sleep(3_000 + random() * 7_000);
  }
  return updates;
}

function untilRolledOut({ admin }: ControlPlane): Promise<void> {
  return eventually(async () => {
    for (const name of names) {
      const { metadata, status } = await admin.get(`${deploymentsPath}/${name}`);
      const { observedGeneration, replicas, updatedReplicas, readyReplicas } = status;
      expect({ observedGeneration, replicas, updatedReplicas, readyReplicas }).toEqual({
        observedGeneration: metadata.generation,
        ...{ replicas: REPLICAS, updatedReplicas: REPLICAS, readyReplicas: REPLICAS },
      });
    }
    const { items } = await admin.get(podsPath);
    expect((items as ApiObject[]).filter(({ metadata }) => metadata.deletionTimestamp)).toEqual([]);
  });
}

function expectTruth(
  log: FollowedLog,
  lives: ReadonlyMap<string, RuntimeLife>,
  outages: readonly Outage[],
): void {
  /** Whether the agent was away for a part of the time: what began and ended in it can't be known. */
  const wasAway = (from: number, to = Number.POSITIVE_INFINITY) =>
    outages.some((outage) => outage.from < to && outage.to > from);
  for (const [id, events] of log.byContainer) {
    const life = lives.get(id);
    if (!life) throw new Error(`${id} was never started`);
    const { startedAt, exitedAt, exitCode, removedAt } = life;
    const steps = events.map(({ type }) => type.replace("Container", ""));
    const ends = [
      ...(exitedAt === undefined ? [] : ["Died"]),
      ...(removedAt === undefined ? [] : ["Removed"]),
    ];
    const isUnseenStart = exitedAt !== undefined && steps[0] !== "Started" && wasAway(startedAt, exitedAt);
    expect(steps, id).toEqual(isUnseenStart ? ends : ["Started", ...ends]);
    const died = events.find(({ type }) => type === "ContainerDied");
    // A container that was removed before it was read took its code with it.
    const isReadable = died?.container?.kind === "container" && died.exitCode !== undefined;
    if (isReadable) expect(died.exitCode, id).toBe(exitCode);
  }
  for (const [id, { startedAt, removedAt }] of lives) {
    if (!log.byContainer.has(id))
      expect(removedAt !== undefined && wasAway(startedAt, removedAt), `${id} was never reported`).toBe(true);
  }
}

/** How often the server accepted an eviction of each pod. */
function evictionsOf({ audit }: ControlPlane, agent: AgentProcess): Map<string, number> {
  const times = new Map<string, number>();
  for (const { objectRef, verb, responseStatus } of audit.requests({ user: agent.user })) {
    if (objectRef?.subresource !== "eviction" || verb !== "create" || responseStatus?.code !== 201) continue;
    times.set(objectRef.name!, (times.get(objectRef.name!) ?? 0) + 1);
  }
  return times;
}
