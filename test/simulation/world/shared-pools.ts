import { join } from "node:path";
import type { KubeObject } from "@nodekeeper/core/kube";
import type { Machine } from "../machine/machine.ts";
import type { AgentHost } from "./agent-host.ts";
import { type ApiServer, NODE } from "./api-server.ts";
import { SLICES, type SliceSpec } from "./claim-scheduler.ts";
import type { ApiFaults } from "./faults.ts";
import type { ApiWrite, History } from "./history.ts";
import { OTHER_NODE, OtherNode } from "./other-node.ts";
import {
  nodesOf,
  OTHER_POOL_DRIVER,
  POOL_DRIVER,
  PoolDriver,
  type RackDevice,
  type View,
} from "./pool-driver.ts";
import type { Settings } from "./settings.ts";

export const LEASES = "leases.coordination.k8s.io";
export const LEASE = `nodekeeper-pools-${POOL_DRIVER}`;
const NAMESPACE = "nodekeeper";
/** `devices.clusterPools` of all agents. */
export const clusterPools = { drivers: [POOL_DRIVER], leaseNamespace: NAMESPACE };

// Enough for a pool of several slices.
const MANY_DEVICES = 140;
const STRAY = "stray-pool-";
// A client that is not an agent renews the Lease so often.
const RENEWAL_MS = 5_000;

export interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
}

/** What the drivers of the two nodes see of the rack when all is calm. At least one of them sees some of it. */
const restingViews: readonly (readonly [View, View])[] = [
  ["all", "all"],
  ["all", "all"],
  ["all", "all"],
  ["all", "some"],
  ["some", "all"],
  ["none", "all"],
  ["all", "none"],
];

/** A rack of devices that two nodes can use, with its driver on both, and everyone who meddles with its Lease and slices. */
export class SharedPools {
  /** That of the node, and that of the other one. */
  readonly drivers: readonly [PoolDriver, PoolDriver];
  readonly other: OtherNode;
  readonly #machine: Machine;
  readonly #history: History;
  readonly #api: ApiServer;
  readonly #agent: AgentHost;
  #devices: RackDevice[] = [];
  #made = 0;
  #strays = 0;
  /** Whether a client that is not an agent has the Lease, and renews it. */
  #isTaken = false;
  // Virtual milliseconds until which the other node does not reach the API server.
  #cutOffUntil = 0;
  /** The annotation of another client on the Lease. */
  #note: { uid: string | undefined; value: string } | undefined;

  constructor(
    machine: Machine,
    history: History,
    { api, agent, settings }: { api: ApiServer; agent: AgentHost; settings: Settings },
  ) {
    this.#machine = machine;
    this.#history = history;
    this.#api = api;
    this.#agent = agent;
    this.other = new OtherNode(machine, history, {
      kubeconfig: api.kubeconfig,
      devices: { clusterPools, wipeDelay: machine.pick(["5s", "30s"]) },
      settings,
      failures: agent.failures,
    });
    api.isElsewhere = (process) => this.other.has(process);
    api.isCutOff = (process) => machine.scheduler.now < this.#cutOffUntil && this.other.has(process);
    const rack = () => this.#devices;
    const driver = (node: string, socketDirectory: string) =>
      new PoolDriver(machine, history, { node, socketDirectory, rack });
    this.drivers = [
      driver(NODE, join(machine.root, "plugins")),
      driver(OTHER_NODE, this.other.socketDirectory),
    ];
    this.#divide();
  }

  start(): void {
    const { process, server, store } = this.#api;
    process.run(() => {
      server.seedNode(OTHER_NODE);
      store.put({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
      for (const object of otherOwners) store.put(object);
    });
    this.other.agent.start();
  }

  /** Returns the driver on a node. */
  driverOn(node: string): PoolDriver {
    return this.drivers.find((driver) => driver.node === node)!;
  }

  /** The agents' ResourceSlices of the rack's pools, and those of other clients in pools that agents have slices of. */
  get slices(): KubeObject[] {
    const all = this.#ofDriver.filter(({ spec }) => (spec as SliceSpec).nodeName === undefined);
    const own = all.filter(({ metadata: { name = "" } }) => !isOthers(name) && !name.startsWith(STRAY));
    const pools = new Set(own.map(({ spec }) => (spec as SliceSpec).pool.name));
    return all.filter(({ spec }) => pools.has((spec as SliceSpec).pool.name));
  }

  /** Slices that the driver's agents have of their nodes. */
  get localSlices(): KubeObject[] {
    return this.#ofDriver.filter(({ spec }) => (spec as SliceSpec).nodeName !== undefined);
  }

  get #ofDriver(): KubeObject[] {
    return this.#api.store.list(SLICES).filter(({ spec }) => (spec as SliceSpec).driver === POOL_DRIVER);
  }

  get lease(): KubeObject | undefined {
    return this.#api.store.get(LEASES, LEASE, NAMESPACE);
  }

  /** The node whose agent has the Lease and runs. Undefined if there is none. */
  get holder(): string | undefined {
    const { holderIdentity = "" } = (this.lease?.spec ?? {}) as LeaseSpec;
    const taking = this.#history.writes.findLast((write) => holderOf(write) === holderIdentity);
    if (!taking || taking.client === "other" || taking.sender.isDead) return undefined;
    return taking.client === "nodekeeper" ? NODE : OTHER_NODE;
  }

  /** Returns what other owners had, and an agent has changed or deleted. */
  changedOfOthers(): string[] {
    const { store } = this.#api;
    const changed = otherOwners.filter(({ kind, metadata, spec }) => {
      const isLease = kind === "Lease";
      const found = store.get(isLease ? LEASES : SLICES, metadata.name, isLease ? NAMESPACE : undefined);
      return JSON.stringify(found?.spec) !== JSON.stringify(spec);
    });
    const { uid, annotations } = this.lease?.metadata ?? {};
    const isNoteKept = uid !== this.#note?.uid || annotations?.[NOTE] === this.#note?.value;
    return [...changed.map(({ metadata }) => metadata.name), ...(isNoteKept ? [] : [`${NOTE} of the Lease`])];
  }

  /** A device of the rack comes, goes, changes or moves to another pool; or a driver sees another part of the rack. */
  change(): void {
    const machine = this.#machine;
    const device = machine.pick(this.#devices);
    const what = machine.pick([
      "add",
      "remove",
      "health",
      "attributes",
      "move",
      "move",
      "divide",
      "view",
      "local",
    ] as const);
    if (what === "view" || what === "local") {
      const driver = machine.pick(this.drivers);
      if (what === "local") driver.changeLocal();
      else driver.look(machine.pick(["all", "all", "some", "none"]));
      return;
    }
    if (what === "add") this.#add();
    else if (what === "divide") this.#divide();
    else if (device) this.#changeDevice(device, what);
    // Each driver learns of it by itself.
    for (const driver of this.drivers)
      machine.scheduler.after(machine.between(0, 1_500), () => driver.changed(what));
  }

  /** All devices of the rack change. */
  touch(): void {
    for (const device of this.#devices) device.revision++;
    for (const driver of this.drivers) driver.changed("attributes of all");
  }

  toggleDriver(): void {
    this.#machine.pick(this.drivers).toggle();
  }

  /** Kills an agent, most often the one that has the Lease. */
  killAgent(): void {
    const machine = this.#machine;
    const edge = machine.chance(0.7) ? machine.between(0, 100) : undefined;
    this.#someAgent().kill(edge);
  }

  stopAgent(): void {
    this.#someAgent().stop();
  }

  /** Kills the agent that has just written, before it knows. */
  meetWrite({ client }: ApiWrite): void {
    (client === "nodekeeper" ? this.#agent : this.other.agent).kill();
  }

  #someAgent(): { kill(atEdge?: number): void; stop(): void } {
    const nodes = [NODE, OTHER_NODE];
    const node = this.#machine.chance(0.3) ? this.#machine.pick(nodes) : (this.holder ?? OTHER_NODE);
    return node === NODE ? this.#agent : this.other.agent;
  }

  /** The API server refuses requests about Leases for a while, as if the agents had lost their rights. */
  refuseLeases(): void {
    const machine = this.#machine;
    const status = machine.pick([403, 500, 503]);
    this.#history.note("fault", `Leases are refused with ${status}`);
    const faults: ApiFaults = {
      of: ({ path }) => (path.includes("/leases") ? { status, headers: {}, body: {} } : undefined),
    };
    this.#api.leaseFaults = faults;
    machine.scheduler.after(machine.between(20_000, 80_000), () => {
      if (this.#api.leaseFaults === faults) this.#api.leaseFaults = undefined;
    });
  }

  /** The other node does not reach the API server for a while. */
  cutOff(): void {
    const machine = this.#machine;
    this.#history.note("fault", `${OTHER_NODE} is cut off`);
    this.#cutOffUntil = machine.scheduler.now + machine.between(1_000, 70_000);
  }

  /** Another client edits the Lease, or takes it and renews it for a while. */
  meddleWithLease(): void {
    const { lease } = this;
    if (!lease || this.#isTaken) return;
    const machine = this.#machine;
    if (machine.chance(0.7)) {
      this.#note = { uid: lease.metadata.uid, value: `${machine.scheduler.now}` };
      const annotations = { ...lease.metadata.annotations, [NOTE]: this.#note.value };
      this.#write("PUT", { ...lease, metadata: { ...lease.metadata, annotations } });
      return;
    }
    this.#isTaken = true;
    machine.scheduler.after(machine.between(0, 20_000), () => {
      this.#isTaken = false;
    });
    this.#renew();
  }

  #renew(): void {
    const { lease } = this;
    if (!this.#isTaken || !lease) return;
    const spec = { ...(lease.spec as LeaseSpec), holderIdentity: STRANGER, leaseDurationSeconds: 15 };
    this.#write("PUT", { ...lease, spec: { ...spec, renewTime: timeOf(this.#machine.wall) } });
    this.#machine.init.after(RENEWAL_MS, () => this.#renew());
  }

  /** Another client deletes or changes a slice of the rack, or adds one of its own to its pool. */
  meddleWithSlices(): void {
    const { slices } = this;
    if (slices.length === 0) return;
    const machine = this.#machine;
    const { metadata, ...slice } = structuredClone(machine.pick(slices));
    const spec = slice.spec as SliceSpec;
    const what = machine.pick(["delete", "change", "add"] as const);
    if (machine.chance(0.5)) spec.pool.generation += machine.between(0, 2);
    if (what === "add") {
      spec.devices = [{ name: `stray-${++this.#strays}` }];
      this.#write("POST", { ...slice, metadata: { name: `${STRAY}${this.#strays}` } });
    } else if (what === "change") {
      spec.devices?.pop();
      this.#write("PUT", { ...slice, metadata });
    } else this.#write("DELETE", { ...slice, metadata });
  }

  /** From now on nothing fails, and what the drivers see does not change. */
  settle(): void {
    this.#isTaken = false;
    this.#cutOffUntil = 0;
    this.#api.leaseFaults = undefined;
    if (this.#devices.length === 0) this.#add();
    const views = this.#machine.pick(restingViews);
    for (const [at, driver] of this.drivers.entries()) {
      if (!driver.isWanted && views[at] !== "none") driver.toggle();
      driver.look(views[at]!);
    }
  }

  // Recorded as other writes are, in the order in which they happen.
  #write(method: ApiWrite["method"], object: KubeObject): void {
    const { process, store } = this.#api;
    const { kind, metadata } = object;
    const { name = "" } = metadata;
    const path =
      kind === "Lease"
        ? `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${name}`
        : `/apis/resource.k8s.io/v1/resourceslices/${name}`;
    this.#history.note("another client", `${method} ${kind} ${name}`);
    this.#history.writes.push({
      at: this.#machine.scheduler.now,
      client: "other",
      sender: this.#machine.init,
      method,
      path,
      body: object,
      status: 200,
      podUid: undefined,
      isDryRun: false,
      isLate: false,
      isRefusedByBudget: false,
      deliveredAt: undefined,
    });
    process.run(() => (method === "DELETE" ? store.delete(SLICES, name) : store.put(object)));
  }

  #add(): void {
    const pool = this.#machine.pick(Object.keys(nodesOf) as (keyof typeof nodesOf)[]);
    this.#devices.push({ name: `port-${this.#made++}`, pool, isHealthy: true, revision: 0 });
  }

  // Other devices than before.
  #divide(): void {
    this.#devices = [];
    const isFine = this.#machine.chance(0.2);
    for (let left = isFine ? MANY_DEVICES : this.#machine.between(1, 6); left > 0; left--) this.#add();
  }

  #changeDevice(device: RackDevice, what: "remove" | "health" | "attributes" | "move"): void {
    if (what === "health") device.isHealthy = !device.isHealthy;
    if (what === "attributes") device.revision++;
    if (what === "move") device.pool = device.pool === "fabric" ? "rack" : "fabric";
    if (what === "remove") this.#devices = this.#devices.filter((other) => other !== device);
  }
}

const STRANGER = "another-client";
const NOTE = "example.org/note";

/** Objects that look like those of the agents, and are others'. */
const otherOwners = [
  sliceOf("others-pool", POOL_DRIVER, {}),
  sliceOf("pool-of-other-driver", OTHER_POOL_DRIVER, { "app.kubernetes.io/managed-by": "nodekeeper" }),
  {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: `nodekeeper-pools-${OTHER_POOL_DRIVER}`, namespace: NAMESPACE },
    spec: { holderIdentity: "worker-9_0", leaseDurationSeconds: 40 },
  },
];

function sliceOf(name: string, driver: string, labels: Record<string, string>) {
  return {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name, labels },
    spec: {
      driver,
      allNodes: true,
      pool: { name: "others", generation: 1, resourceSliceCount: 1 },
      devices: [{ name: `device-of-${name}` }],
    },
  };
}

/** Returns whether an object is one that no agent may write. */
export function isOthers(name: string): boolean {
  return otherOwners.some(({ metadata }) => metadata.name === name);
}

/** Returns whether a write has changed the Lease. */
export function isLeaseWrite({ method, path, body, status, isDryRun }: ApiWrite): boolean {
  if (isDryRun || status >= 300 || !path.includes("/leases")) return false;
  if (method === "POST") return (body as KubeObject).metadata.name === LEASE;
  return path.endsWith(`/${LEASE}`);
}

/** Returns the holder that a write has given to the Lease: empty if it has none. Undefined for other writes. */
export function holderOf(write: ApiWrite): string | undefined {
  if (!isLeaseWrite(write) || write.method === "DELETE") return undefined;
  return ((write.body as KubeObject).spec as LeaseSpec).holderIdentity ?? "";
}

function timeOf(wall: number): string {
  return new Date(wall).toISOString().replace("Z", "000Z");
}
