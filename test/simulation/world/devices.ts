import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { KubeObject } from "@nodekeeper/core/kube";
import type { Machine } from "../machine/machine.ts";
import { type ApiServer, NODE } from "./api-server.ts";
import { Binding } from "./binding.ts";
import { BindingDriver } from "./binding-driver.ts";
import { ClaimKubelet, type KnownClaim } from "./claim-kubelet.ts";
import { ClaimScheduler, SLICES, type SliceSpec, TO_BIND } from "./claim-scheduler.ts";
import { type ClaimCall, DriverActor } from "./drivers.ts";
import type { BindingRates } from "./faults.ts";
import type { History } from "./history.ts";
import type { ContainerRuntime } from "./node.ts";
import { rackDrivers } from "./pool-driver.ts";

const SCHEDULER_PERIOD_MS = 300;
// The kubelet stops the containers of a force-deleted pod within the grace period of the pod.
const LONGEST_END_MS = 40_000;
const LONGEST_DOWN_MS = 15_000;

const FOREIGN_CDI_FILE = "example.com-tool.yaml";
const FOREIGN_CDI = '{"cdiVersion":"0.6.0","kind":"example.com/tool","devices":[]}';

/** The node's devices with their drivers, and everyone who deals with them besides the agent. */
export class Devices {
  readonly drivers: DriverActor[];
  /** Calls of the agent to drivers, oldest first. */
  readonly calls: ClaimCall[] = [];
  /** Those to unprepare a claim. */
  readonly unpreparations: ClaimCall[] = [];
  readonly kubelet: ClaimKubelet;
  readonly scheduler: ClaimScheduler;
  /** Undefined if no device of the world has binding conditions. */
  readonly binding: Binding | undefined;
  /** Settings of the agent. */
  readonly settings: Record<string, unknown>;
  readonly #machine: Machine;
  readonly #history: History;
  readonly #api: ApiServer;
  readonly #runtime: ContainerRuntime;
  readonly #cdiDirectory: string;
  readonly #hasForeignCdi: boolean;
  #strays = 0;
  #kubeletRestarts = 0;

  constructor(
    machine: Machine,
    history: History,
    { api, runtime }: { api: ApiServer; runtime: ContainerRuntime },
    {
      drivers,
      hasShares,
      replicas,
      hasBinding,
      rates,
    }: { drivers: number; hasShares: boolean; replicas: number; hasBinding: boolean; rates: BindingRates },
  ) {
    this.#runtime = runtime;
    this.#machine = machine;
    this.#history = history;
    this.#api = api;
    const onCall = (call: ClaimCall) => {
      this.calls.push(call);
      if (!call.isPrepare) this.unpreparations.push(call);
    };
    this.drivers = Array.from(
      { length: drivers },
      (_, at) => new DriverActor(machine, history, `gpu-${at}.example.com`, onCall, hasShares),
    );
    this.kubelet = new ClaimKubelet(machine, history, (known) => this.#unpreparedAt(known));
    this.scheduler = new ClaimScheduler(
      api,
      machine.pick([0, 0, 0, 2_000]),
      (uid) => this.kubelet.find(uid) !== undefined,
    );
    if (hasBinding) {
      const driver = new BindingDriver(machine, history, `${TO_BIND}-0.example.com`, onCall);
      this.drivers.push(driver);
      this.binding = new Binding(machine, history, { api, claims: this.scheduler, driver, replicas, rates });
    }
    const { registryDirectory } = this.kubelet;
    this.#cdiDirectory = join(machine.runDirectory, "cdi");
    this.#hasForeignCdi = machine.chance(0.5);
    mkdirSync(registryDirectory);
    this.settings = {
      wipeDelay: machine.pick(["5s", "30s"]),
      kubeletPlugin: {
        enabled: true,
        registryDirectory,
        cdiDirectory: this.#cdiDirectory,
        callTimeout: machine.pick(["10s", "40s"]),
        ...(hasBinding ? { deviceStatus: true } : {}),
      },
    };
  }

  start(): void {
    this.#api.process.run(() => {
      for (const slice of foreignSlices) this.#api.store.put(slice);
    });
    this.#writeForeignCdi();
    this.kubelet.start(this.scheduler);
    const { init } = this.#machine;
    const loop = () => {
      this.scheduler.step();
      this.binding?.scheduler.step();
      init.after(SCHEDULER_PERIOD_MS, loop);
    };
    init.after(0, loop);
  }

  /** Drivers that are installed, whose devices are to be published and prepared. */
  get installed(): DriverActor[] {
    return this.drivers.filter(({ isWanted }) => isWanted);
  }

  #unpreparedAt({ driver, claim }: KnownClaim): number | undefined {
    const holders = this.drivers.find(({ name }) => name === driver)?.prepared.values() ?? [];
    if ([...holders].includes(claim.uid)) return undefined;
    const its = this.unpreparations.filter((each) => each.uid === claim.uid && each.driver === driver);
    return its.findLast(({ doneAt }) => doneAt !== undefined)?.doneAt ?? 0;
  }

  /** Contents of the CDI directory without the file of another owner, by name. */
  get cdiFiles(): ReadonlyMap<string, string> {
    if (!existsSync(this.#cdiDirectory)) return new Map();
    const names = readdirSync(this.#cdiDirectory)
      .filter((name) => name !== FOREIGN_CDI_FILE)
      .sort();
    return new Map(names.map((name) => [name, readFileSync(join(this.#cdiDirectory, name), "utf8")]));
  }

  /** Whether the CDI file of another owner is as its owner wrote it. */
  get isForeignCdiKept(): boolean {
    if (!this.#hasForeignCdi) return true;
    const file = join(this.#cdiDirectory, FOREIGN_CDI_FILE);
    return existsSync(file) && readFileSync(file, "utf8") === FOREIGN_CDI;
  }

  #writeForeignCdi(): void {
    if (!this.#hasForeignCdi) return;
    mkdirSync(this.#cdiDirectory, { recursive: true });
    writeFileSync(join(this.#cdiDirectory, FOREIGN_CDI_FILE), FOREIGN_CDI);
  }

  /** ResourceSlices of the agent. */
  get slices() {
    return this.#api.store
      .list(SLICES)
      .filter((slice) => !isForeign(slice.metadata.name) && !isOfRack(slice));
  }

  /** ResourceSlices, also of other clients, in pools in which the agent has any. It does not change other pools. */
  get slicesOfOwnPools() {
    const { slices } = this;
    const poolOf = ({ spec }: (typeof slices)[number]) => {
      const { driver, pool } = spec as SliceSpec;
      return `${driver} ${pool.name}`;
    };
    const own = new Set(slices.filter(({ metadata }) => !isStray(metadata.name)).map(poolOf));
    return slices.filter((slice) => own.has(poolOf(slice)));
  }

  change(): void {
    if (this.drivers.length > 0) this.#machine.pick(this.drivers).change();
  }

  replaceDriver(): void {
    if (this.drivers.length > 0) this.#machine.pick(this.drivers).replace();
  }

  toggleDriver(): void {
    if (this.drivers.length > 0) this.#machine.pick(this.drivers).toggle();
  }

  /** What a boot does: no device is prepared any more, and the kubelet calls again for each claim. */
  boot(): void {
    for (const { prepared } of this.drivers) prepared.clear();
    this.#writeForeignCdi();
    this.restartKubelet();
  }

  restartKubelet(): void {
    const { init } = this.#machine;
    this.#history.note("fault", "kubelet ends");
    this.kubelet.stop();
    const restart = ++this.#kubeletRestarts;
    init.after(this.#machine.pick([0, 0, this.#machine.between(1_000, LONGEST_DOWN_MS)]), () => {
      if (restart !== this.#kubeletRestarts) return;
      this.#history.note("kubelet", "starts");
      this.kubelet.start(this.scheduler);
    });
  }

  /** Deletes a pod at once. Its containers may run on for a while: the kubelet stops them later. */
  forceDelete(): void {
    const pods = this.scheduler.pods.filter(({ claims }) =>
      claims.some(({ metadata }) => metadata.ownerReferences),
    );
    if (pods.length === 0) return;
    const { pod } = this.#machine.pick(pods);
    this.#history.note("operator", `force-deletes ${pod.metadata.name}`);
    if (this.#machine.chance(0.6)) this.#linger(pod);
    this.#api.process.run(() => this.scheduler.forceDelete(pod));
  }

  #linger({ metadata: { uid = "", name = "", namespace = "" } }: KubeObject): void {
    const { runtime, process } = this.#runtime;
    process.run(() => {
      const sandbox = runtime.runSandbox({ uid, name, namespace }, 1);
      runtime.runContainer(sandbox, { name: "lingering" });
      this.#machine.scheduler.after(this.#machine.between(500, LONGEST_END_MS), () =>
        process.run(() => runtime.removeSandbox(sandbox)),
      );
    });
  }

  deleteSlice(): void {
    const slices = this.slices;
    if (slices.length === 0) return;
    const { name } = this.#machine.pick(slices).metadata;
    this.#history.note("operator", `deletes ResourceSlice ${name}`);
    this.#api.process.run(() => this.#api.store.delete(SLICES, name!));
  }

  /** Another client changes a slice of the agent, or adds one of its own to the agent's pool. */
  meddle(): void {
    const { slices } = this;
    if (slices.length === 0) return;
    const { metadata, ...slice } = structuredClone(this.#machine.pick(slices));
    const spec = slice.spec as SliceSpec;
    const isNew = this.#machine.chance(0.5);
    if (isNew) spec.devices = [{ name: `stray-${++this.#strays}` }];
    else spec.devices?.pop();
    if (this.#machine.chance(0.5)) spec.pool.generation += this.#machine.between(0, 2);
    const name = isNew ? `${STRAY}${this.#strays}` : metadata.name!;
    this.#history.note("another client", `${isNew ? "adds" : "changes"} ResourceSlice ${name}`);
    this.#api.process.run(() =>
      this.#api.store.put({ ...slice, spec, metadata: isNew ? { name } : metadata }),
    );
  }

  /** An operator removes a CDI file. Not while the kubelet calls, whose answer could then no longer be judged. */
  removeCdiFile(): void {
    const names = [...this.cdiFiles.keys()].filter((name) => !name.startsWith("."));
    if (names.length === 0 || !this.kubelet.isIdle) return;
    const name = this.#machine.pick(names);
    this.#history.note("operator", `removes ${name}`);
    rmSync(join(this.#cdiDirectory, name));
  }
}

const STRAY = "stray-";

/** Returns whether a ResourceSlice is one of `SharedPools`. */
function isOfRack({ spec }: KubeObject): boolean {
  return rackDrivers.includes((spec as SliceSpec).driver);
}

/** Returns whether a ResourceSlice belongs to another client than the agent. */
export function isForeign(name: string | undefined): boolean {
  return foreignSlices.some(({ metadata }) => metadata.name === name);
}

/** Returns whether a ResourceSlice was added by another client to a pool of the agent. */
export function isStray(name: string | undefined): boolean {
  return name?.startsWith(STRAY) ?? false;
}

/** Slices of a driver that publishes its own, and of the same driver's agent on another node. */
export const foreignSlices = [
  foreignSlice("own-plugin", "other.example.com", NODE),
  foreignSlice("elsewhere", "gpu-0.example.com", "worker-2"),
];

function foreignSlice(name: string, driver: string, nodeName: string) {
  return {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name },
    spec: {
      driver,
      nodeName,
      pool: { name: nodeName, generation: 1, resourceSliceCount: 1 },
      devices: [{ name: `foreign-${name}` }],
    },
  };
}
