import { LatestValue } from "@nodekeeper/core/lib";
import { type ClaimToBind, type DeviceStatus, serveDeviceDriver } from "@nodekeeper/sdk";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ApiObject } from "./support/admin-client.ts";
import {
  claiming,
  claimSpec,
  createClaimTemplate,
  createDeviceClass,
  resources,
} from "./support/node/claims.ts";
import { type ClaimsNode, startClaimsNode } from "./support/node/claims-node.ts";
import { pod, podsPath, untilDeleted, untilPodReady } from "./support/node/workloads.ts";
import { missingForNode } from "./support/node.ts";

const DRIVER = "fabric.example.com";
const ATTACHED = "example.com/Attached";
const FAILED = "example.com/AttachFailed";
/** The scheduler reads the conditions every 5 s. */
const TWO_POLLS_MS = 11_000;

const ofTemplate = { resourceClaimTemplateName: "gpu" };

type Attach = (claim: ClaimToBind) => "attached" | "failed" | undefined;

/** A driver of one device, which reports what `attach` says about each allocation that it is told of. */
class FabricDriver {
  readonly told: ClaimToBind[][] = [];
  readonly #statuses = new LatestValue<DeviceStatus[]>();
  readonly #prepared = new Map<string, DeviceStatus[]>();
  #attach: Attach = () => undefined;
  #stop = () => Promise.resolve();

  async serve(socketDir: string): Promise<void> {
    this.#statuses.set([]);
    const statuses = this.#statuses;
    const driver = serveDeviceDriver({
      name: DRIVER,
      socketDir,
      async *devices() {
        const conditions = { bindingConditions: [ATTACHED], bindingFailureConditions: [FAILED] };
        yield [{ devices: [{ name: "gpu-0", ...conditions }] }];
      },
      prepare: (claim) => {
        this.#prepared.set(
          claim.uid,
          claim.devices.map((device) => statusOf(claim.uid, device, "attached")),
        );
        return claim.devices.map(({ request, pool, device }) => ({ request, pool, device }));
      },
      unprepare: ({ uid }) => {
        this.#prepared.delete(uid);
        this.#report();
      },
      onAllocations: (claims) => {
        this.told.push(claims);
        this.#report();
      },
      async *status(signal) {
        for (;;) yield await statuses.take(signal);
      },
    });
    this.#stop = () => driver.stop();
    await driver.ready;
  }

  get last(): ClaimToBind[] {
    return this.told.at(-1) ?? [];
  }

  set attach(attach: Attach) {
    this.#attach = attach;
    this.#report();
  }

  async stop(): Promise<void> {
    await this.#stop();
  }

  #report(): void {
    const waiting = this.last
      .filter(({ uid }) => !this.#prepared.has(uid))
      .flatMap((claim) => {
        const state = this.#attach(claim);
        return state ? claim.devices.map((device) => statusOf(claim.uid, device, state)) : [];
      });
    this.#statuses.set([...waiting, ...[...this.#prepared.values()].flat()]);
  }
}

function statusOf(
  claimUid: string,
  { pool, device }: { pool: string; device: string },
  state: "attached" | "failed",
): DeviceStatus {
  const type = state === "attached" ? ATTACHED : FAILED;
  return { claimUid, pool, device, conditions: [{ type, status: "True", reason: "Fabric" }] };
}

describe.skipIf(missingForNode())("binding conditions with kube-scheduler and kubelet", () => {
  let node: ClaimsNode;
  let driver: FabricDriver;

  beforeAll(async () => {
    node = await startClaimsNode({ flags: { "devices-kubelet-plugin-device-status": "true" } });
    await createDeviceClass(node.cluster, DRIVER);
    await createClaimTemplate(node.cluster, "gpu", claimSpec(DRIVER));
    driver = new FabricDriver();
    await driver.serve(node.agent.pluginDirectory);
  });
  afterAll(async () => {
    await driver?.stop();
    await node?.stop();
  });

  const pods = new Set<string>();
  afterEach(async () => {
    for (const name of pods) await remove(name);
    await until("the driver is told", () => driver.last.length === 0);
    driver.attach = () => undefined;
  });

  async function create(name: string, source: Parameters<typeof claiming>[0]): Promise<void> {
    pods.add(name);
    await node.cluster.admin.create(podsPath, pod(name, claiming(source)));
  }

  async function remove(name: string): Promise<void> {
    await node.cluster.admin.delete(`${podsPath}/${name}`);
    await untilDeleted(node.cluster, name);
    pods.delete(name);
  }

  const read = async (name: string): Promise<ApiObject> =>
    await node.cluster.admin.get(`${podsPath}/${name}`);

  /** Creates a pod that claims the device, and waits until the driver is told. */
  async function waiting(
    name: string,
    source: Parameters<typeof claiming>[0] = ofTemplate,
  ): Promise<ClaimToBind> {
    await create(name, source);
    await until("the driver is told", () => driver.last.length === 1);
    expect((await read(name)).spec.nodeName).toBeUndefined();
    return driver.last[0]!;
  }

  async function conditionsOf(claim: ClaimToBind): Promise<string[]> {
    const path = `${resources}/namespaces/${claim.namespace}/resourceclaims/${claim.name}`;
    const { status } = await node.cluster.admin.get(path);
    return (status.devices ?? []).flatMap(({ conditions }: ApiObject) =>
      conditions.map(({ type, status }: ApiObject) => `${type}=${status}`),
    );
  }

  it("a pod is not bound before its driver has attached the device, and then runs", async () => {
    const claim = await waiting("waits");
    expect(claim.pods).toMatchObject([{ name: "waits", namespace: "default" }]);
    expect(claim.devices).toMatchObject([
      { device: "gpu-0", bindingConditions: [ATTACHED], bindingFailureConditions: [FAILED] },
    ]);
    await new Promise((resolve) => setTimeout(resolve, TWO_POLLS_MS));
    expect((await read("waits")).spec.nodeName).toBeUndefined();
    driver.attach = () => "attached";
    const { spec } = await untilPodReady(node.cluster, "waits");
    expect(spec.nodeName).toBe(node.node.name);
    await until("told that it is prepared", () => driver.last.length === 0);
    expect(await conditionsOf(claim)).toEqual([`${ATTACHED}=True`]);
  });

  it("the scheduler gives up an allocation whose driver reports a failure, and binds the pod by the next", async () => {
    const first = await waiting("fails");
    driver.attach = ({ allocatedAt }) => (allocatedAt > first.allocatedAt ? "attached" : "failed");
    await untilPodReady(node.cluster, "fails");
    const path = `${resources}/namespaces/${first.namespace}/resourceclaims/${first.name}`;
    const { status } = await node.cluster.admin.get(path);
    expect(Date.parse(status.allocation.allocationTimestamp)).toBeGreaterThan(first.allocatedAt.getTime());
    expect(await conditionsOf(first)).toEqual([`${ATTACHED}=True`]);
  });

  it("a pod is bound also if the agent was killed between the allocation and its condition", async () => {
    const claim = await waiting("killed");
    await node.agent.child.kill();
    const before = driver.told.length;
    driver.attach = () => "attached";
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(await conditionsOf(claim)).toEqual([]);
    node.agent.child.start();
    await node.agent.ready();
    await untilPodReady(node.cluster, "killed");
    await eventually(() => expect(driver.last).toEqual([]));
    // It was never told that the claim is gone before it was prepared.
    expect(driver.told.slice(before).map((claims) => claims.length)).toEqual([1, 0]);
  });

  it("the condition of a shared claim stays for its later pods, when the first of them has ended", async () => {
    await node.cluster.admin.create(`${resources}/namespaces/default/resourceclaims`, {
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name: "shared" },
      spec: claimSpec(DRIVER),
    });
    const source = { resourceClaimName: "shared" };
    const claim = await waiting("first", source);
    driver.attach = () => "attached";
    await untilPodReady(node.cluster, "first");
    await create("second", source);
    await untilPodReady(node.cluster, "second");
    await remove("first");
    await create("third", source);
    await untilPodReady(node.cluster, "third");
    expect(await conditionsOf(claim)).toEqual([`${ATTACHED}=True`]);
    const path = `${resources}/namespaces/default/resourceclaims/shared`;
    const { status } = await node.cluster.admin.get(path);
    expect(Date.parse(status.allocation.allocationTimestamp)).toBe(claim.allocatedAt.getTime());
  });
});
