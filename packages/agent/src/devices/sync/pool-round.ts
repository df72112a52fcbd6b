import type { KubeObject } from "@nodekeeper/core/kube";
import { messageOf } from "@nodekeeper/core/lib";
import { sameTaints } from "../model/canonical.ts";
import type { CheckedDevice, StoredDevice, StoredSlice } from "../model/checked.ts";
import type { SliceSpec } from "../model/model.ts";
import { decodeSpec, encodeSlice, isSameJson, type SliceVersion, storedSlice } from "../model/versions.ts";
import { droppedFields } from "../plan/features.ts";
import type { PoolPlan, SliceWrite } from "../plan/plan.ts";
import type { PlanMemory } from "../plan/plan-memory.ts";
import type { RefusedDevices } from "./refused-devices.ts";
import { asSent } from "./sent-slice.ts";
import { isStale } from "./slice-api.ts";
import type { SliceCache } from "./slice-cache.ts";
import { forEachAtMost, isRefusal, lacksDryRun, type SliceRequests } from "./slice-requests.ts";
import type { WriteResult } from "./write-result.ts";

/** What is remembered of a driver's slices beside the slices. */
export interface DriverSlices {
  /** Devices that the server refuses. */
  readonly refused: RefusedDevices;
  readonly plans: PlanMemory;
}

const MOST_WRITES_AT_ONCE = 8;
const MOST_DRY_RUNS = 128;

/** One turn of writing one pool. */
export class PoolRound {
  readonly #requests: SliceRequests;
  readonly #cache: SliceCache;
  readonly #version: SliceVersion;
  readonly #plan: PoolPlan;
  readonly #memory: DriverSlices;
  readonly #result: WriteResult;
  // How often a write of each slice was refused.
  readonly #refusals: Map<string, number>;
  readonly #signal: AbortSignal;
  #dryRuns = 0;
  #written = 0;

  constructor(
    requests: SliceRequests,
    cache: SliceCache,
    version: SliceVersion,
    plan: PoolPlan,
    memory: DriverSlices,
    result: WriteResult,
    refusals: Map<string, number>,
    signal: AbortSignal,
  ) {
    this.#requests = requests;
    this.#cache = cache;
    this.#version = version;
    this.#plan = plan;
    this.#memory = memory;
    this.#result = result;
    this.#refusals = refusals;
    this.#signal = signal;
  }

  /** Answers whether the pool has to be planned again: it turned out to be otherwise than it was planned for. */
  async run(): Promise<boolean> {
    const { isAllocatable, rises, deletes, writes, outdated } = this.#plan;
    const isDangerous = isAllocatable && rises;
    if (isDangerous || this.#memory.refused.isToBeChecked) {
      const verdict = await this.#check(writes.filter(({ isChanged }) => isChanged));
      if (verdict !== "accepted") return verdict === "again";
    }
    let again = false;
    for (const slice of deletes) {
      again = (await this.#try(slice.name, () => this.#requests.delete(slice, this.#signal))) || again;
    }
    const refused: { write: SliceWrite; error: unknown }[] = [];
    await forEachAtMost(writes, MOST_WRITES_AT_ONCE, async (write) => {
      // The first refusal of an otherwise untouched pool is most likely one of them all.
      if (refused.length > 0 && this.#written === 0) return;
      const send = async () => {
        try {
          await this.#send(write);
        } catch (error) {
          if (!isRefusal(error)) throw error;
          refused.push({ write, error });
        }
      };
      again = (await this.#try(write.name, send)) || again;
    });
    for (const { write, error } of refused) {
      again = (await this.#isolate(write, error)) || again;
      // Nothing of the pool is accepted: the others would be refused for the same.
      if (this.#written === 0 && !again) break;
    }
    if (again || refused.length > 0) return again;
    for (const slice of outdated) {
      const drop = async () => {
        await this.#requests.delete(slice, this.#signal);
        this.#result.outdated.push(slice.name);
      };
      await this.#try(slice.name, drop);
    }
    return false;
  }

  // Answers whether another client's write came in between, so that there is another plan to make.
  async #try(name: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return false;
    } catch (error) {
      if (isStale(error)) return true;
      if (!isRefusal(error)) throw error;
      this.#result.failures.set(name, error);
      return false;
    }
  }

  // Dry runs of all that is to be written, before anything is touched.
  async #check(writes: readonly SliceWrite[]): Promise<"accepted" | "again" | "refused"> {
    let verdict: "accepted" | "again" | "refused" = "accepted";
    await forEachAtMost(writes, MOST_WRITES_AT_ONCE, async (write) => {
      const { error, answer } = await this.#tryOut(write, write.devices);
      // Another client, such as an admission webhook, makes of it what is stored: there is nothing to write.
      if (answer && write.stored && this.#isStoredAs(write.stored, answer)) {
        const as = asSent(write, { metadata: write.stored.metadata }, decodeSpec(this.#version, answer));
        this.#cache.wrote({ metadata: write.stored.metadata }, { ...as, pool: write.stored.pool });
        verdict = "again";
      }
      if (error === undefined) return;
      if (isStale(error)) verdict = "again";
      else if (await this.#quarantine(write, error)) verdict = "again";
      else {
        this.#result.failures.set(write.name, error);
        if (verdict === "accepted") verdict = "refused";
      }
    });
    return verdict;
  }

  // A refused write: the pool is made complete again, then the devices to blame are found.
  async #isolate(write: SliceWrite, error: unknown): Promise<boolean> {
    const refusals = (this.#refusals.get(write.name) ?? 0) + 1;
    this.#refusals.set(write.name, refusals);
    const isInPlace = this.#plan.isAllocatable && !this.#plan.rises;
    if (!isInPlace && write.devices.length > 0) {
      try {
        await this.#send({ ...write, devices: [], spec: { ...write.spec, devices: [] } });
      } catch (error) {
        if (isStale(error)) return true;
        if (!isRefusal(error)) throw error;
        return this.#giveUp(write, error);
      }
    }
    if (await this.#quarantine(write, error, refusals > 1)) return true;
    this.#result.failures.set(write.name, error);
    return false;
  }

  // Not even an empty slice is accepted. With others of the pool already there, the pool continues without its devices.
  #giveUp(write: SliceWrite, error: unknown): boolean {
    this.#result.failures.set(write.name, error);
    if (this.#written === 0) return false;
    this.#memory.refused.add(this.#plan.pool, write.devices, messageOf(error));
    return true;
  }

  // Answers whether the pool is to be planned again: without the devices to blame, or because there are none.
  // An admission webhook may accept in dry runs what it refuses: `isCertain` means that the refusal is no accident.
  async #quarantine(write: SliceWrite, error: unknown, isCertain = false): Promise<boolean> {
    if (write.devices.length === 0 || lacksDryRun(error)) return false;
    const empty = await this.#refusalOf(write, []);
    if (empty !== undefined) return false;
    const stored = new Map(write.stored?.devices.map((device) => [device.name, device]));
    const suspects = write.devices.filter((device) => !isStored(device, stored.get(device.name)));
    const message = messageOf(error);
    let found = await this.#refusedAmong(write, suspects, message);
    if (found.length === 0 && suspects.length < write.devices.length)
      found = await this.#refusedAmong(write, write.devices, message);
    if (found.length === 0 && isCertain)
      found = [{ devices: suspects.length > 0 ? suspects : write.devices, message }];
    // Nothing found: the server accepts now what it refused before, and the slice is written again as it is.
    for (const { devices, message } of found) this.#memory.refused.add(this.#plan.pool, devices, message);
    return true;
  }

  async #refusedAmong(
    write: SliceWrite,
    devices: readonly CheckedDevice[],
    message: string,
  ): Promise<{ devices: readonly CheckedDevice[]; message: string }[]> {
    if (devices.length === 0) return [];
    const error = await this.#refusalOf(write, devices);
    if (error === undefined) return [];
    const reason = isRefusal(error) ? messageOf(error) : message;
    if (devices.length === 1 || this.#dryRuns >= MOST_DRY_RUNS) return [{ devices, message: reason }];
    const middle = devices.length >> 1;
    const [first, second] = await Promise.all([
      this.#refusedAmong(write, devices.slice(0, middle), reason),
      this.#refusedAmong(write, devices.slice(middle), reason),
    ]);
    const found = [...first, ...second];
    return found.length > 0 ? found : [{ devices: devices.slice(middle), message: reason }];
  }

  /** Why the server would refuse the slice with these devices; undefined where it would not, or where that can't be known. */
  async #refusalOf(write: SliceWrite, devices: readonly CheckedDevice[]): Promise<unknown> {
    return (await this.#tryOut(write, devices)).error;
  }

  async #tryOut(
    write: SliceWrite,
    devices: readonly CheckedDevice[],
  ): Promise<{ error?: unknown; answer?: KubeObject }> {
    this.#dryRuns++;
    const spec = specWith(write.spec, devices);
    try {
      return { answer: await this.#requests.dryRun(await this.#encode(write, spec), this.#signal) };
    } catch (error) {
      if (lacksDryRun(error)) return {};
      if (isRefusal(error) || isStale(error)) return { error };
      throw error;
    }
  }

  #isStoredAs(stored: StoredSlice, answer: KubeObject): boolean {
    const other = storedSlice(this.#version, answer);
    return (
      stored.pool.resourceSliceCount === other.pool.resourceSliceCount &&
      stored.fields === other.fields &&
      stored.counterSets.join() === other.counterSets.join() &&
      stored.devices.length === other.devices.length &&
      stored.devices.every(({ name, fingerprint, taints }, at) => {
        const device = other.devices[at]!;
        return (
          name === device.name && fingerprint === device.fingerprint && sameTaints(device.taints, taints)
        );
      })
    );
  }

  async #send(write: SliceWrite): Promise<void> {
    const object = await this.#encode(write, write.spec);
    await this.#requests.write(object, (answer) => this.#took(write, object, answer), this.#signal);
    this.#written++;
    this.#result.writes++;
  }

  async #encode(write: SliceWrite, spec: SliceSpec): Promise<KubeObject> {
    const metadata = await this.#requests.metadataOf(write.stored ?? write.name, this.#signal);
    return encodeSlice(this.#version, metadata, spec);
  }

  #took(write: SliceWrite, object: KubeObject, answer: KubeObject): StoredSlice {
    const stored = decodeSpec(this.#version, answer);
    if (!isSameJson(object.spec, answer.spec)) {
      const dropped = droppedFields(write.spec, stored);
      this.#result.dropped.push(...dropped);
      for (const { feature } of dropped) if (feature) this.#result.missing.add(feature);
    }
    return asSent(write, answer, stored);
  }
}

function isStored(device: CheckedDevice, stored: StoredDevice | undefined): boolean {
  return stored !== undefined && (stored.sent === device || stored.fingerprint === device.fingerprint);
}

// With the taints' times that the plan gave them.
function specWith(spec: SliceSpec, devices: readonly CheckedDevice[]): SliceSpec {
  const names = new Set(devices.map(({ name }) => name));
  return { ...spec, ...(spec.devices && { devices: spec.devices.filter(({ name }) => names.has(name)) }) };
}
