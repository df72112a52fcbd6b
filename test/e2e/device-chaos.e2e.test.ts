import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "../../packages/testing/src/runtime/seeded-random.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import type { ControlPlane } from "./support/control-plane.ts";
import { ChaosDrivers } from "./support/node/chaos-drivers.ts";
import { causeFaults, deviceFaults, nodeFaults } from "./support/node/chaos-faults.ts";
import { type ClaimLoadCounts, runClaimLoad } from "./support/node/claim-load.ts";
import { claimSpec, createClaimTemplate, createDeviceClass, resources } from "./support/node/claims.ts";
import { startClaimsNode } from "./support/node/claims-node.ts";
import { brokenSteps, DeviceRecord, handovers, overlaps, stepsIn } from "./support/node/device-record.ts";
import { podsPath } from "./support/node/workloads.ts";
import { type ClusterNode, missingForNode } from "./support/node.ts";

const MINUTES = Number(process.env.CHAOS_MINUTES ?? 0.75);
const SEED = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
const PATIENCE_MS = 300_000;
const DRIVER = "chaos.example.com";
const DEVICES = 4;
// The load goes on without faults until devices have changed hands so often, on a slow machine too.
const FEWEST_HANDOVERS = 3;

// 2.x: its events reach every subscriber, so that the record of the runtime has them all.
describe.skipIf(missingForNode("newContainerd"))(
  "exclusive devices under faults of everything on the node",
  () => {
    const ends: Array<() => unknown> = [];
    let cluster: ControlPlane;
    let node: ClusterNode;
    let agent: AgentProcess;
    let drivers: ChaosDrivers;
    let record: DeviceRecord;

    beforeAll(async () => {
      const started = await startClaimsNode({ containerd: "newContainerd" });
      ({ cluster, node, agent } = started);
      ends.push(() => started.stop());
      record = new DeviceRecord(cluster, node);
      ends.push(() => record.stop());
      const directory = join(cluster.directory, "chaos");
      drivers = new ChaosDrivers({
        name: DRIVER,
        socketDir: agent.pluginDirectory,
        directory,
        devices: DEVICES,
      });
      ends.push(() => drivers.current.stop());
      await createDeviceClass(cluster, DRIVER);
      await createClaimTemplate(cluster, "one", claimSpec(DRIVER));
      await eventually(() => expect(agent.child.log).toContain("registered with the kubelet"));
    });
    afterAll(async () => {
      for (const end of ends.splice(0).reverse()) await end();
    });

    it(
      `no device is of two claims at one time, and no claim stays prepared (seed ${SEED})`,
      async () => {
        // A sequence for each loop, so that what it does depends on the seed alone.
        const random = (loop: number) => seededRandom(SEED + loop * 1_000_003);
        const endsAt = Date.now() + MINUTES * 60_000;
        const isOver = () => Date.now() > endsAt;
        const isLoadOver = () =>
          isOver() &&
          (handovers(record.uses()).length >= FEWEST_HANDOVERS || Date.now() > endsAt + PATIENCE_MS);
        const world = { node, agent, drivers, record };
        const [counts, ...faults] = await Promise.all([
          runClaimLoad(cluster, "one", random(0), isLoadOver),
          causeFaults(nodeFaults, { ...world, random: random(1) }, isOver),
          causeFaults(deviceFaults, { ...world, random: random(2) }, isOver),
        ]);
        print(counts, Object.assign({}, ...faults));
        expect(brokenRules()).toEqual([]);
        for (const { metadata } of (await cluster.admin.get(podsPath)).items)
          await cluster.admin.delete(`${podsPath}/${metadata.name}`).catch(() => {});
        await eventually(expectNothingLeft);
        expect(brokenRules()).toEqual([]);
        expect(counts.ready).toBeGreaterThan(0);
        // Each ready pod had a claim of its own: a record that lacks some of them proves nothing.
        const seen = new Set(record.uses().map(({ claim }) => claim));
        expect(seen.size).toBeGreaterThanOrEqual(counts.ready);
        expect(counts.forced).toBeGreaterThan(0);
        expect(handovers(record.uses()).length).toBeGreaterThanOrEqual(FEWEST_HANDOVERS);
      },
      MINUTES * 60_000 + 900_000,
    );

    function brokenRules(): string[] {
      const uses = record.uses();
      return [...overlaps(uses), ...brokenSteps(uses, stepsIn(drivers.journal))];
    }

    async function expectNothingLeft(): Promise<void> {
      const [pods, claims] = await Promise.all([
        cluster.admin.get(podsPath),
        cluster.admin.get(`${resources}/resourceclaims`),
      ]);
      const state = readFileSync(node.path("/var/lib/kubelet/dra_manager_state"), "utf8");
      expect({
        pods: pods.items.length,
        claims: claims.items.length,
        running: record.uses().filter(({ to }) => to === undefined),
        setUp: drivers.setUp(),
        files: readdirSync(node.path("/run/cdi")).filter((name) => name.includes(DRIVER)),
        ofKubelet: state.includes(DRIVER),
        ofAgent: (await agent.command("devices", DRIVER)).includes("chaos-"),
      }).toEqual({ pods: 0, claims: 0, running: [], setUp: [], files: [], ofKubelet: false, ofAgent: false });
    }

    function print({ pods, ready, forced }: ClaimLoadCounts, faults: Record<string, number>): void {
      const uses = record.uses();
      const changes = handovers(uses);
      const kinds = Object.entries(faults).map(([name, count]) => `${count} ${name}`);
      console.log(
        `${MINUTES} minutes, seed ${SEED}: ${pods} pods, ${ready} ready, ${forced} deleted by force; ` +
          `${uses.length} containers with a device, ${changes.length} times it went to another claim, ` +
          `the soonest ${Math.round(Math.min(...changes))} ms after the container before had exited; ` +
          `${record.unseen.length} containers were not seen; faults: ${kinds.join(", ")}`,
      );
    }
  },
);
