import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import type { AgentProcess } from "./support/agent-process.ts";
import { Child } from "./support/child.ts";
import type { ControlPlane } from "./support/control-plane.ts";
import { claimSpec, createClaimTemplate, createDeviceClass } from "./support/node/claims.ts";
import { startClaimsNode } from "./support/node/claims-node.ts";
import { container, pod, podsPath, untilDeleted } from "./support/node/workloads.ts";
import { missingForNode } from "./support/node.ts";

const DRIVER = "rolling.example.com";
const PODS = 20;
const PACE_MS = 250;

/** Milliseconds from a pod's creation to its readiness, by pod. */
type Waits = ReadonlyMap<string, number>;

describe.skipIf(missingForNode())("agent and driver are replaced while pods start", () => {
  let cluster: ControlPlane;
  let agent: AgentProcess;
  let driver: Child;
  let without: Waits;
  const ends: Array<() => unknown> = [];

  const driverInstance = (number: number) => {
    const child = new Child({
      name: `driver ${number}`,
      command: process.execPath,
      args: [
        join(import.meta.dirname, "../../examples/driver/main.ts"),
        ...["--socket-dir", agent.pluginDirectory, "--name", DRIVER, "--count", "64"],
      ],
      logFile: join(cluster.directory, `driver-${number}.log`),
    });
    ends.push(() => child.stop());
    child.start();
    return child;
  };

  beforeAll(async () => {
    const started = await startClaimsNode({ flags: { "rolling-update": "true" } });
    ({ cluster, agent } = started);
    ends.push(() => started.stop());
    driver = driverInstance(1);
    await createDeviceClass(cluster, DRIVER);
    await createClaimTemplate(cluster, "one", claimSpec(DRIVER));
    await agent.child.until("the driver is registered", async () =>
      expect(agent.child.log).toContain("registered with the kubelet"),
    );
    without = await startPods("without", async () => {});
  });
  afterAll(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  /** Creates pods with a claim each, one after the other, does something meanwhile, and waits until all are ready. */
  async function startPods(prefix: string, meanwhile: () => Promise<void>): Promise<Waits> {
    const created = new Map<string, number>();
    const waits = new Map<string, number>();
    const look = async () => {
      const { items } = await cluster.admin.get(podsPath);
      for (const { metadata, status } of items as ApiObject[]) {
        const from = created.get(metadata.name);
        const isReady = status.conditions?.some(
          ({ type, status: is }: ApiObject) => type === "Ready" && is === "True",
        );
        if (from !== undefined && isReady && !waits.has(metadata.name))
          waits.set(metadata.name, Date.now() - from);
      }
      return waits.size;
    };
    const creating = (async () => {
      for (let number = 0; number < PODS; number++) {
        const name = `${prefix}-${number}`;
        created.set(name, Date.now());
        await cluster.admin.create(
          podsPath,
          pod(name, {
            resourceClaims: [{ name: "devices", resourceClaimTemplateName: "one" }],
            containers: [
              container({
                command: ["/bin/sh", "-c", "exec sleep 1000000"],
                resources: { claims: [{ name: "devices" }] },
              }),
            ],
            terminationGracePeriodSeconds: 1,
          }),
        );
        await look();
        await sleep(PACE_MS);
      }
    })();
    await Promise.all([creating, meanwhile()]);
    await eventually(async () => expect(await look()).toBe(PODS));
    for (const name of created.keys()) await cluster.admin.delete(`${podsPath}/${name}`);
    for (const name of created.keys()) await untilDeleted(cluster, name);
    const longest = Math.max(...waits.values());
    console.log(`${prefix}: ${PODS} pods ready after ${Math.min(...waits.values())} to ${longest} ms`);
    return waits;
  }

  /** The kubelet tries a pod again only 60 to 90 s after a claim that was not prepared, which it reports. */
  async function expectNoDelay(prefix: string, waits: Waits): Promise<void> {
    const { items } = await cluster.admin.get("/api/v1/namespaces/default/events");
    const failed = (items as ApiObject[]).filter(
      ({ reason, involvedObject }) =>
        reason === "FailedPrepareDynamicResources" && involvedObject.name.startsWith(prefix),
    );
    // The node authorizer of a busy API server may refuse the kubelet a new claim, before any driver is called.
    const refused = failed.filter(({ message }) => message.includes("fetch ResourceClaim"));
    expect(failed.filter((each) => !refused.includes(each)).map(({ message }) => message)).toEqual([]);
    const others = [...waits].filter(
      ([name]) => !refused.some(({ involvedObject }) => involvedObject.name === name),
    );
    const more = Math.max(...others.map(([, ms]) => ms)) - Math.max(...without.values());
    console.log(`${prefix}: the last pod was ready ${more} ms later than without`);
    expect(more).toBeLessThan(45_000);
  }

  it("the driver, with surge: no pod waits for the kubelet's next attempt", async () => {
    const waits = await startPods("driver", async () => {
      await sleep(PACE_MS * 4);
      const next = driverInstance(2);
      await next.until("registered", async () => expect(next.log).toContain('"msg":"registered"'));
      await driver.stop();
      driver = next;
    });
    await expectNoDelay("driver", waits);
  });

  it("the driver, without surge: pods wait until it is back", async () => {
    // The agent waits 20 s for a driver. If this one takes longer to start, the kubelet rightly tries a minute later.
    for (let attempt = 1, awayMs = Number.POSITIVE_INFINITY; awayMs > 15_000; attempt++) {
      expect(attempt).toBeLessThan(5);
      const prefix = `restart-${attempt}`;
      const waits = await startPods(prefix, async () => {
        await sleep(PACE_MS * 4);
        const stoppedAt = Date.now();
        await driver.stop();
        await sleep(3_000);
        driver = driverInstance(2 + attempt);
        await driver.until("registered", async () => expect(driver.log).toContain('"msg":"registered"'));
        awayMs = Date.now() - stoppedAt;
      });
      if (awayMs <= 15_000) await expectNoDelay(prefix, waits);
    }
  });

  it("the agent, with surge: no pod waits for the kubelet's next attempt", async () => {
    const waits = await startPods("agent", async () => {
      await sleep(PACE_MS * 4);
      const next = agent.successor();
      ends.push(() => next.stop());
      next.start();
      await next.until("started", async () => expect(next.log).toContain("status server is listening"));
      expect(agent.child.log).toContain("handed over");
      await agent.child.stop();
    });
    await expectNoDelay("agent", waits);
    expect((await agent.readiness()).text).toContain("[+]KubeletPluginsRegistered ok");
  });
});
