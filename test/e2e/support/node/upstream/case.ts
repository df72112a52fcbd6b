import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { expect } from "vitest";
import { ApiError, type ApiObject } from "../../admin-client.ts";
import { createDeviceClass, resources } from "../claims.ts";
import type { ClaimsNode } from "../claims-node.ts";
import { container, pod, podsPath } from "../workloads.ts";
import { CaseDriver, type CaseDriverOptions, type Outcome } from "./case-driver.ts";
import type { Observed } from "./observed.ts";
import type { SharedRestart } from "./shared-restart.ts";

const claimsPath = `${resources}/namespaces/default/resourceclaims`;

export interface CasePodOptions {
  /** Default: the case's name. */
  name?: string;
  /** Whether its container stays. Default: it ends at once, and the pod succeeds. */
  stays?: boolean;
  /** Requests for each driver. Default 1. */
  requests?: number;
  /** Further fields of each request. */
  exactly?: ApiObject;
}

/** The drivers, claims and pods of one case, whose names no other case has. */
export class UpstreamCase {
  readonly on: ClaimsNode;
  readonly name: string;
  readonly #observed: Observed;
  readonly #restart: SharedRestart | undefined;
  #hasRestarted = false;
  readonly #drivers: CaseDriver[] = [];
  readonly #pods = new Set<string>();
  readonly #classes = new Map<string, Promise<void>>();
  readonly #touched = new Map<string, number>();

  /** @param restart if the case restarts the kubelet */
  constructor(on: ClaimsNode, observed: Observed, name: string, restart?: SharedRestart) {
    this.on = on;
    this.name = name;
    this.#observed = observed;
    this.#restart = restart;
  }

  /** Restarts the kubelet, together with the other cases; `whileDown` runs in between. */
  async restartKubelet(whileDown?: () => unknown): Promise<void> {
    if (!this.#restart || this.#hasRestarted)
      throw new Error(`${this.name} has no restart of the kubelet left`);
    this.#hasRestarted = true;
    await this.#restart.join(whileDown);
  }

  /** A driver that is not started. */
  newDriver({ suffix = "", ...options }: CaseDriverOptions & { suffix?: string } = {}): CaseDriver {
    const driver = new CaseDriver(this.on.agent, `${this.name}${suffix}.example.com`, options);
    this.#drivers.push(driver);
    return driver;
  }

  /** A driver that the kubelet has registered, and whose devices are published. */
  async driver(options: CaseDriverOptions & { suffix?: string } = {}): Promise<CaseDriver> {
    const driver = this.newDriver(options);
    await driver.registration?.start();
    await driver.start();
    await this.untilRegistered(driver);
    await eventually(async () => expect(await this.slices(driver)).toHaveLength(1));
    return driver;
  }

  /** A driver that registers on one socket and serves on another, which is not started. */
  newSplitDriver(options: Pick<CaseDriverOptions, "counted"> = {}): CaseDriver {
    const ownDirectory = join(this.on.cluster.directory, "own");
    mkdirSync(ownDirectory, { recursive: true });
    return this.newDriver({ ...options, ownDirectory });
  }

  /** How often the kubelet has registered the agent for a driver. */
  registrations({ name }: CaseDriver): Promise<number> {
    return this.#observed.registrationsOf(name);
  }

  untilRegistered(driver: CaseDriver, times = 1): Promise<void> {
    return eventually(async () => expect(await this.registrations(driver)).toBeGreaterThanOrEqual(times));
  }

  slices({ name }: CaseDriver): Promise<ApiObject[]> {
    return this.#observed.slicesOf(name);
  }

  untilNoSlices(driver: CaseDriver): Promise<void> {
    return eventually(async () => expect(await this.slices(driver)).toEqual([]));
  }

  /** Creates a claim for devices of these drivers, and a pod with it. */
  async pod(drivers: readonly CaseDriver[], options: CasePodOptions = {}): Promise<string> {
    const { name = this.name, stays = false, requests = 1, exactly } = options;
    const { admin } = this.on.cluster;
    for (const { name: driver } of drivers) {
      const created = this.#classes.get(driver) ?? createDeviceClass(this.on.cluster, driver);
      this.#classes.set(driver, created);
      await created;
    }
    const requestsOf = ({ name: deviceClassName }: CaseDriver, of: number) =>
      Array.from({ length: requests }, (_, at) => ({
        name: `request-${of}-${at}`,
        exactly: { deviceClassName, ...exactly },
      }));
    await admin.create(claimsPath, {
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaim",
      metadata: { name },
      spec: { devices: { requests: drivers.flatMap(requestsOf) } },
    });
    this.#pods.add(name);
    const command = ["/bin/sh", "-c", stays ? "exec sleep 1000000" : "exit 0"];
    const spec = {
      restartPolicy: "Never",
      resourceClaims: [{ name: "devices", resourceClaimName: name }],
      containers: [container({ command, resources: { claims: [{ name: "devices" }] } })],
      terminationGracePeriodSeconds: 1,
    };
    await admin.create(podsPath, pod(name, spec));
    return name;
  }

  async delete(name = this.name, query = ""): Promise<void> {
    await this.on.cluster.admin.delete(`${podsPath}/${name}${query}`);
  }

  untilDeleted(name = this.name): Promise<void> {
    return eventually(async () => expect((await this.#observed.pod(name))?.status).toBeUndefined());
  }

  async phase(name = this.name): Promise<string | undefined> {
    return (await this.#observed.pod(name))?.status.phase;
  }

  untilPhase(phase: "Running" | "Succeeded", name = this.name): Promise<void> {
    return eventually(async () => {
      await this.#touch(name);
      expect(await this.phase(name)).toBe(phase);
    });
  }

  until(driver: CaseDriver, outcome: Outcome, times = 1): Promise<void> {
    return eventually(async () => {
      for (const name of this.#pods) await this.#touch(name);
      expect(driver.count(outcome), `${driver.name}: ${driver.outcomes}`).toBeGreaterThanOrEqual(times);
    });
  }

  /** What the kubelet reports of each device of the pod's container. */
  async health(name = this.name): Promise<string[]> {
    const pod = await this.#observed.pod(name);
    const of = pod?.status.containerStatuses?.[0].allocatedResourcesStatus ?? [];
    return of.flatMap(({ resources }: ApiObject) => resources.map(({ health }: ApiObject) => health));
  }

  untilHealth(health: "Healthy" | "Unhealthy" | "Unknown", name = this.name): Promise<void> {
    return eventually(async () => {
      const found = await this.health(name);
      expect(found.length).toBeGreaterThan(0);
      for (const each of found) expect(each).toBe(health);
    });
  }

  /** Messages of the Events of a pod. */
  async events(name = this.name): Promise<string[]> {
    const selector = encodeURIComponent(`involvedObject.name=${name}`);
    const { items } = await this.on.cluster.admin.get(
      `/api/v1/namespaces/default/events?fieldSelector=${selector}`,
    );
    return items.map(({ message }: ApiObject) => message);
  }

  /** Deletes what it created. */
  async end(): Promise<void> {
    const { admin } = this.on.cluster;
    if (!this.#hasRestarted) this.#restart?.leave();
    for (const driver of this.#drivers) driver.relent();
    for (const name of this.#pods) await gone(admin.delete(`${podsPath}/${name}`));
    for (const name of this.#pods) await this.untilDeleted(name);
    for (const name of this.#pods) await gone(admin.delete(`${claimsPath}/${name}`));
    for (const driver of this.#drivers) await driver.end();
  }

  // A change of a pod makes the kubelet look at it at once. After a failed call it would do so only 60 to 90 s later.
  async #touch(name: string): Promise<void> {
    if (Date.now() - (this.#touched.get(name) ?? 0) < 5_000) return;
    this.#touched.set(name, Date.now());
    const annotations = { touched: String(Date.now()) };
    await gone(this.on.cluster.admin.patch(`${podsPath}/${name}`, { metadata: { annotations } }));
  }
}

async function gone(request: Promise<unknown>): Promise<void> {
  await request.catch((error) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  });
}
