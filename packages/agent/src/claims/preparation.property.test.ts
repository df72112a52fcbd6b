import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PrepareDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import { messageOf, NodekeeperError, silentLogger, systemClock } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { ClaimStore, StateDatabase, type StoredClaim } from "../state/index.ts";
import type { Allocation } from "./allocation.ts";
import { CdiDirectory } from "./cdi-directory.ts";
import { specOf } from "./cdi-file.ts";
import { ClaimAllocations } from "./claim-allocations.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { ClaimRecords, type RecordedClaim } from "./claim-records.ts";
import { HostFiles } from "./host-files.ts";
import { Preparation } from "./preparation.ts";
import type { PreparedDevice } from "./recorded-devices.ts";
import { hastyClock, podEntry } from "./testing/claim-world.ts";

// The kubelet, a driver and the machine in a few lines, the agent's part as it is: real files, a real state database.
// The agent is killed before or after any of its steps and started again, and all comes right.

const DRIVER = "gpu.example.com";
// By name; two of them want the same device, and the scheduler gives it to one at a time.
const CLAIMS: Readonly<Record<string, string>> = { a: "device-0", b: "device-0", c: "device-1" };

type Step =
  | { do: "start" | "end" | "again" | "lose"; claim: string }
  | { do: "kill"; afterSteps: number }
  | { do: "empty" | "emptyMetadata" | "reboot" | "disconnect" | "connect" | "fail" | "exit" };

/** The next claim wants the device of a pod whose container runs on. */
const deletedByForce: Step[] = [
  { do: "start", claim: "a" },
  { do: "lose", claim: "a" },
  { do: "start", claim: "b" },
  { do: "exit" },
  { do: "start", claim: "b" },
];

/** Another pod uses a claim that the kubelet could not unprepare. */
const usedAgain: Step[] = [
  { do: "start", claim: "a" },
  { do: "fail" },
  { do: "end", claim: "a" },
  { do: "again", claim: "a" },
];

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "start" as const,
        "start" as const,
        "end" as const,
        "again" as const,
        "lose" as const,
      ),
      claim: fc.constantFrom(...Object.keys(CLAIMS)),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("kill" as const), afterSteps: fc.nat(14) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "empty" as const,
        "emptyMetadata" as const,
        "reboot" as const,
        "disconnect" as const,
        "connect" as const,
        "fail" as const,
        "exit" as const,
      ),
    }),
  },
);

class Killed extends Error {}

/** Counts what the agent does to the world; from the step on which it is killed it does nothing any more. */
class Life {
  left = Number.POSITIVE_INFINITY;
  step(): void {
    if (this.left-- <= 0) throw new Killed("killed");
  }
  async around<T>(work: () => T | Promise<T>): Promise<T> {
    this.step();
    const result = await work();
    this.step();
    return result;
  }
}

/** A claim of a pod on the node. */
interface KubeletClaim {
  claim: ClaimReference;
  isWanted: boolean;
  answer: readonly PreparedDevice[] | undefined;
}

class World {
  readonly directory = mkdtempSync(join(tmpdir(), "nkcp-"));
  readonly cdi = join(this.directory, "cdi");
  readonly metadata = join(this.directory, "metadata");
  boot = 1;
  isConnected = true;
  isFailing = false;
  /** What the driver has set up, UIDs of claims by device; the machine's restart undoes it. */
  readonly setUp = new Map<string, string>();
  /** What the kubelet knows: it asks until it is answered well, and never again then. */
  readonly kubelet = new Map<string, KubeletClaim>();
  /** Devices of pods whose container runs, by UID; each pod has that of its claim. */
  readonly running = new Map<string, string>();
  /** The API server's claims, by UID. */
  readonly claims = new Map<string, KubeObject>();
  #created = 0;
  #life = new Life();
  #database: StateDatabase | undefined;
  #preparation!: Preparation;
  #records!: ClaimRecords;

  start(): void {
    this.#database?.close();
    const life = new Life();
    this.#life = life;
    this.#database = StateDatabase.open({
      directory: join(this.directory, "state"),
      clock: systemClock,
      log: silentLogger,
      bootId: `boot-${this.boot}`,
    });
    class Store extends ClaimStore {
      override together(work: () => void): void {
        life.step();
        super.together(work);
        life.step();
      }
      override save(claim: StoredClaim): void {
        life.step();
        super.save(claim);
        life.step();
      }
      override remove(driver: string, uid: string): void {
        life.step();
        super.remove(driver, uid);
        life.step();
      }
    }
    class Directory extends CdiDirectory {
      override write(driver: string, uid: string, text: string): void {
        life.step();
        super.write(driver, uid, text);
        life.step();
      }
      override remove(driver: string, uid: string): Promise<void> {
        return life.around(() => super.remove(driver, uid));
      }
    }
    this.#records = new ClaimRecords(new Store(this.#database), `boot-${this.boot}`, systemClock);
    const client = {
      prepare: async ({ uid }: ClaimReference, { devices }: Allocation) =>
        await life.around(() => {
          if (this.isFailing) throw new NodekeeperError("unavailable", "out of order");
          for (const { device } of devices) {
            // What is left of another claim would be in its way.
            expect([undefined, uid]).toContain(this.setUp.get(device));
            expect(this.#usersOf(device).filter((user) => user !== uid)).toEqual([]);
            this.setUp.set(device, uid);
          }
          const edits = { env: [`BOOT=${this.boot}`] };
          return PrepareDevicesResponse.fromPartial({
            devices: devices.map((device) => ({ ...device, edits })),
          });
        }),
      unprepare: async (_claim: ClaimReference, { devices }: Pick<RecordedClaim, "devices">) =>
        await life.around(() => {
          if (this.isFailing) throw new NodekeeperError("unavailable", "out of order");
          // As hardware is reset, whichever pod uses it.
          for (const { device } of devices) {
            expect(this.#usersOf(device)).toEqual([]);
            this.setUp.delete(device);
          }
        }),
    };
    this.#preparation = new Preparation({
      allocations: new ClaimAllocations(
        { read: (claim) => life.around(() => this.#read(claim)) },
        this.#records,
      ),
      records: this.#records,
      directory: new Directory(this.cdi, this.metadata),
      host: new HostFiles({ root: "/", allowed: ["/"] }),
      drivers: { get: () => ({ connection: this.isConnected ? { uid: 0, client } : undefined }) },
      reportedDevice: (_driver, _pool, name) => ({ name, attributes: { boot: { int: this.boot } } }),
      problems: { preparationFailed: () => {} },
      queue: { add: () => {}, addAfter: () => {} },
      pods: {
        readNow: async (uid) =>
          podEntry(uid, this.running.has(uid) ? "running" : undefined, this.#sandboxOf(uid)),
      },
      clock: hastyClock(),
      log: silentLogger,
    });
  }

  async do(step: Step): Promise<void> {
    switch (step.do) {
      case "start": {
        this.#schedule(step.claim);
        return await this.ask();
      }
      case "end": {
        const known = this.kubelet.get(step.claim);
        if (!known) return;
        known.isWanted = false;
        this.running.delete(known.claim.uid);
        return await this.ask();
      }
      case "again": {
        const known = this.kubelet.get(step.claim);
        // Unless the agent was killed right before its answer.
        if (known?.answer && this.#records.get(DRIVER, known.claim.uid)) known.isWanted = true;
        return;
      }
      case "lose": {
        // The pod was deleted by force, and the kubelet has lost what it knew. Its container runs on.
        const known = this.kubelet.get(step.claim);
        if (known) this.claims.delete(known.claim.uid);
        this.kubelet.delete(step.claim);
        return;
      }
      case "kill":
        this.#life.left = step.afterSteps;
        await this.reconcile();
        await this.ask();
        this.start();
        return;
      case "empty":
        rmSync(this.cdi, { recursive: true, force: true });
        return;
      case "emptyMetadata":
        rmSync(this.metadata, { recursive: true, force: true });
        this.start();
        return await this.reconcile();
      case "reboot":
        rmSync(this.cdi, { recursive: true, force: true });
        this.boot++;
        this.setUp.clear();
        this.running.clear();
        this.start();
        return;
      case "disconnect":
      case "connect":
        this.isConnected = step.do === "connect";
        return;
      case "fail":
        this.isFailing = !this.isFailing;
        return;
      case "exit":
        this.exit();
    }
  }

  /** Ends the containers of pods that were deleted by force. */
  exit(): void {
    const wanted = new Set([...this.kubelet.values()].map(({ claim }) => claim.uid));
    for (const uid of this.running.keys()) if (!wanted.has(uid)) this.running.delete(uid);
  }

  /** The kubelet's sync of all pods: each claim is asked for once. */
  async ask(): Promise<void> {
    await Promise.all(
      [...this.kubelet].map(async ([name, known]) => {
        const { claim } = known;
        try {
          if (!known.isWanted) {
            await this.#preparation.unprepare(DRIVER, claim, never);
            this.kubelet.delete(name);
            this.claims.delete(claim.uid);
          } else {
            known.answer ??= await this.#preparation.prepare(DRIVER, claim, never);
            // Without its file, as after a reboot, the runtime does not create the container.
            if (existsSync(this.#fileOf(claim))) this.running.set(claim.uid, this.#deviceOfClaim(claim));
          }
        } catch (error) {
          expect(messageOf(error)).toMatch(
            /killed$|out of order$|is not connected to Nodekeeper$|has not exited: .* is running$/,
          );
        }
      }),
    );
  }

  async reconcile(): Promise<void> {
    for (const { uid } of this.#records.of(DRIVER))
      await this.#preparation.reconcile(DRIVER, uid, never).catch((error) => {
        expect(messageOf(error)).toMatch(/killed$|out of order$|has not exited: .* is running$/);
      });
  }

  /** Unprepares what the kubelet never will. */
  async sweep(): Promise<void> {
    for (const { uid } of this.#records.of(DRIVER))
      await this.#preparation.unprepareEnded(DRIVER, uid, never);
  }

  #fileOf({ uid }: ClaimReference): string {
    return join(this.cdi, `nodekeeper-${DRIVER}_${uid}.yaml`);
  }

  #sandboxOf(uid: string): "running" | undefined {
    const known = [...this.kubelet.values()].find(({ claim }) => claim.uid === uid);
    return known?.isWanted && known.answer ? "running" : undefined;
  }

  #usersOf(device: string): string[] {
    return [...this.running].flatMap(([uid, used]) => (used === device ? [uid] : []));
  }

  #deviceOfClaim({ uid }: ClaimReference): string {
    return deviceOf(this.claims.get(uid)!);
  }

  // The scheduler allocates a device to one claim at a time.
  #schedule(name: string): void {
    const device = CLAIMS[name]!;
    const isTaken = [...this.claims.values()].some((claim) => deviceOf(claim) === device);
    if (this.kubelet.has(name) || isTaken) return;
    const claim = { namespace: "default", name, uid: `uid-${name}-${this.#created++}` };
    this.claims.set(claim.uid, claimObject(claim, device));
    this.kubelet.set(name, { claim, isWanted: true, answer: undefined });
  }

  #read({ uid }: ClaimReference): KubeObject {
    const found = this.claims.get(uid);
    if (found) return found;
    throw new NodekeeperError("notFound", `no ResourceClaim ${uid}`);
  }

  /** What every container that starts now would meet. */
  async check(): Promise<void> {
    const wanted = [...this.kubelet.values()].map(({ claim }) => claim.uid).sort();
    expect([...this.setUp.values()].sort()).toEqual(wanted);
    expect(
      this.#records
        .of(DRIVER)
        .map(({ uid }) => uid)
        .sort(),
    ).toEqual(wanted);
    const names = existsSync(this.cdi) ? readdirSync(this.cdi).filter((name) => !name.startsWith(".")) : [];
    expect(names.sort()).toEqual(wanted.map((uid) => `nodekeeper-${DRIVER}_${uid}.yaml`));
    for (const { claim, answer } of this.kubelet.values()) {
      const text = readFileSync(this.#fileOf(claim), "utf8");
      expect(text).toContain(`BOOT=${this.boot}`);
      for (const { cdiDeviceIds } of answer!)
        expect(text).toContain(`"name": "${cdiDeviceIds[0]!.split("=")[1]}"`);
      const [{ hostPath = "" } = {}] = specOf(text).devices[0]?.containerEdits.mounts ?? [];
      expect(readFileSync(hostPath, "utf8")).toContain(`"boot":{"int":${this.boot}}`);
    }
    const directories = existsSync(this.metadata) ? readdirSync(this.metadata) : [];
    expect(directories.sort()).toEqual(wanted.map((uid) => `${DRIVER}_${uid}`));
  }

  /** What a container that starts now mounts is there, whatever happened before. */
  checkMounts(): void {
    const names = existsSync(this.cdi) ? readdirSync(this.cdi).filter((name) => !name.startsWith(".")) : [];
    for (const name of names) {
      const { devices } = specOf(readFileSync(join(this.cdi, name), "utf8"));
      const mounts = devices.flatMap(({ containerEdits }) => containerEdits.mounts ?? []);
      expect(mounts.map(({ hostPath }) => existsSync(hostPath))).toEqual([true]);
    }
  }

  end(): void {
    this.#database?.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

const never = new AbortController().signal;

function claimObject({ namespace, name, uid }: ClaimReference, device: string): KubeObject {
  const results = [{ request: "req", driver: DRIVER, pool: "node", device }];
  const reservedFor = [{ resource: "pods", name, uid }];
  return {
    metadata: { namespace, name, uid },
    status: { allocation: { devices: { results } }, reservedFor },
  };
}

function deviceOf({ status }: KubeObject): string {
  return (status as { allocation: { devices: { results: { device: string }[] } } }).allocation.devices
    .results[0]!.device;
}

it("killed at any step, with directories emptied, reboots and drivers that fail or are disconnected: nothing is lost, nothing stays", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 3, maxLength: 25 }), async (steps) => {
      const world = new World();
      try {
        world.start();
        for (const step of steps) {
          await world.do(step);
          world.checkMounts();
        }
        world.isConnected = true;
        world.isFailing = false;
        world.exit();
        await world.reconcile();
        await world.ask();
        await world.reconcile();
        await world.sweep();
        await world.check();
      } finally {
        world.end();
      }
    }),
    { numRuns: 40, examples: [[deletedByForce], [usedAgain]] },
  );
});
