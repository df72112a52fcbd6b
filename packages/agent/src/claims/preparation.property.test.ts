import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeObject } from "@nodekeeper/core/kube";
import { messageOf, NodekeeperError, silentLogger, systemClock } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { ClaimStore, StateDatabase, type StoredClaim } from "../state/index.ts";
import type { Allocation } from "./allocation.ts";
import type { PreparedDevice } from "./cdi-file.ts";
import { CdiFolder } from "./cdi-folder.ts";
import type { ClaimReference } from "./claim-reader.ts";
import { ClaimRecords } from "./claim-records.ts";
import { HostFiles } from "./host-files.ts";
import { Preparation } from "./preparation.ts";

// The kubelet, a driver and the machine in a few lines, the agent's part as it is: real files, a real state database.
// The agent is killed before or after any of its steps and started again, and all comes right.

const DRIVER = "gpu.example.com";
const CLAIMS = ["a", "b", "c"];

type Step =
  | { do: "start" | "end"; claim: string }
  | { do: "kill"; afterSteps: number }
  | { do: "empty" | "reboot" | "disconnect" | "connect" | "fail" };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("start" as const, "end" as const),
      claim: fc.constantFrom(...CLAIMS),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("kill" as const), afterSteps: fc.nat(14) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "empty" as const,
        "reboot" as const,
        "disconnect" as const,
        "connect" as const,
        "fail" as const,
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

class World {
  readonly folder = mkdtempSync(join(tmpdir(), "nkcp-"));
  readonly cdi = join(this.folder, "cdi");
  boot = 1;
  isConnected = true;
  isFailing = false;
  /** What the driver has set up; the machine's restart undoes it. */
  readonly setUp = new Set<string>();
  /** What the kubelet knows: it asks until it is answered well, and never again then. */
  readonly kubelet = new Map<string, { isWanted: boolean; answer: readonly PreparedDevice[] | undefined }>();
  #life = new Life();
  #database: StateDatabase | undefined;
  #preparation!: Preparation;
  #records!: ClaimRecords;

  start(): void {
    this.#database?.close();
    const life = new Life();
    this.#life = life;
    this.#database = StateDatabase.open({
      directory: join(this.folder, "state"),
      clock: systemClock,
      log: silentLogger,
      bootId: `boot-${this.boot}`,
    });
    class Store extends ClaimStore {
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
    class Folder extends CdiFolder {
      override write(driver: string, uid: string, text: string): Promise<void> {
        return life.around(() => super.write(driver, uid, text));
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
          this.setUp.add(uid);
          return {
            devices: devices.map((device) => ({
              ...device,
              cdiDeviceIds: [],
              edits: { env: [`BOOT=${this.boot}`], deviceNodes: [], mounts: [], hooks: [] },
            })),
          };
        }),
      unprepare: async ({ uid }: ClaimReference) =>
        await life.around(() => {
          if (this.isFailing) throw new NodekeeperError("unavailable", "out of order");
          this.setUp.delete(uid);
        }),
    };
    this.#preparation = new Preparation({
      reader: { read: (claim) => life.around(() => claimObject(claim)) },
      records: this.#records,
      folder: new Folder(this.cdi),
      host: new HostFiles({ root: "/", allowed: ["/"] }),
      connected: () => (this.isConnected ? { client } : undefined),
      log: silentLogger,
    });
  }

  async do(step: Step): Promise<void> {
    switch (step.do) {
      case "start": {
        const known = this.kubelet.get(step.claim);
        if (!known) this.kubelet.set(step.claim, { isWanted: true, answer: undefined });
        return await this.ask();
      }
      case "end": {
        const known = this.kubelet.get(step.claim);
        if (known) known.isWanted = false;
        return await this.ask();
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
      case "reboot":
        rmSync(this.cdi, { recursive: true, force: true });
        this.boot++;
        this.setUp.clear();
        this.start();
        return;
      case "disconnect":
      case "connect":
        this.isConnected = step.do === "connect";
        return;
      case "fail":
        this.isFailing = !this.isFailing;
    }
  }

  /** The kubelet's sync of all pods: each claim is asked for once. */
  async ask(): Promise<void> {
    await Promise.all(
      [...this.kubelet].map(async ([name, known]) => {
        const claim = referenceOf(name);
        try {
          if (!known.isWanted) {
            await this.#preparation.unprepare(DRIVER, claim, never);
            this.kubelet.delete(name);
          } else known.answer ??= await this.#preparation.prepare(DRIVER, claim, never);
        } catch (error) {
          expect(["killed", "out of order", `driver ${DRIVER} is not connected to Nodekeeper`]).toContain(
            messageOf(error),
          );
        }
      }),
    );
  }

  async reconcile(): Promise<void> {
    for (const { uid } of this.#records.of(DRIVER))
      await this.#preparation.reconcile(DRIVER, uid, never).catch((error) => {
        expect(["killed", "out of order"]).toContain(messageOf(error));
      });
  }

  /** What every container that starts now would meet. */
  async check(): Promise<void> {
    const wanted = [...this.kubelet.keys()];
    expect([...this.setUp].sort()).toEqual(wanted.map((name) => referenceOf(name).uid).sort());
    expect(
      this.#records
        .of(DRIVER)
        .map(({ uid }) => uid)
        .sort(),
    ).toEqual([...this.setUp].sort());
    const names = existsSync(this.cdi) ? readdirSync(this.cdi).filter((name) => !name.startsWith(".")) : [];
    expect(names.sort()).toEqual(
      wanted.map((name) => `nodekeeper-${DRIVER}_${referenceOf(name).uid}.yaml`).sort(),
    );
    for (const [name, { answer }] of this.kubelet) {
      const { uid } = referenceOf(name);
      const text = readFileSync(join(this.cdi, `nodekeeper-${DRIVER}_${uid}.yaml`), "utf8");
      expect(text).toContain(`BOOT=${this.boot}`);
      for (const { cdiDeviceIds } of answer!)
        expect(text).toContain(`"name": "${cdiDeviceIds[0]!.split("=")[1]}"`);
    }
  }

  end(): void {
    this.#database?.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const never = new AbortController().signal;

function referenceOf(name: string): ClaimReference {
  return { namespace: "default", name, uid: `uid-of-${name}` };
}

function claimObject({ namespace, name, uid }: ClaimReference): KubeObject {
  const results = [{ request: "req", driver: DRIVER, pool: "node", device: `device-${name}` }];
  return { metadata: { namespace, name, uid }, status: { allocation: { devices: { results } } } };
}

it("killed at any step, with folders emptied, reboots and drivers that fail or are away: nothing is lost, nothing stays", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 3, maxLength: 25 }), async (steps) => {
      const world = new World();
      try {
        world.start();
        for (const step of steps) await world.do(step);
        world.isConnected = true;
        world.isFailing = false;
        await world.reconcile();
        await world.ask();
        await world.reconcile();
        await world.check();
      } finally {
        world.end();
      }
    }),
    { numRuns: 40 },
  );
});
