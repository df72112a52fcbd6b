import type { KubeObject } from "@nodekeeper/core/kube";
import { messageOf } from "@nodekeeper/core/lib";
import { sameTaints } from "../model/canonical.ts";
import type { CheckedDevice, StoredDevice, StoredSlice } from "../model/checked.ts";
import type { SliceSpec } from "../model/model.ts";
import { decodeSpec, encodeSlice, isSameJson, type SliceVersion, storedSlice } from "../model/versions.ts";
import { droppedFields } from "../plan/features.ts";
import type { PoolPlan, SliceWrite } from "../plan/plan.ts";
import type { PlanMemory } from "../plan/plan-memory.ts";
import type { WriteResult } from "./driver-sync.ts";
import type { RefusedDevices } from "./refused-devices.ts";
import { asSent } from "./sent-slice.ts";
import { isStale } from "./slice-api.ts";
import type { SliceCache } from "./slice-cache.ts";
import { forEachAtMost, isRefusal, lacksDryRun, type SliceRequests } from "./slice-requests.ts";

/** State of a driver's slices that outlives one round. */
export interface DriverSlices {
  /** Devices that the server refuses. */
  readonly refused: RefusedDevices;
  readonly plans: PlanMemory;
}

const MOST_WRITES_AT_ONCE = 8;
const MOST_DRY_RUNS = 128;

export interface PoolRoundOptions {
  requests: SliceRequests;
  cache: SliceCache;
  version: SliceVersion;
  plan: PoolPlan;
  memory: DriverSlices;
  result: WriteResult;
  /** Number of refused writes by slice. */
  refusals: Map<string, number>;
  signal: AbortSignal;
}

/** Writes one pool once. */
export class PoolRound {
  readonly #options: PoolRoundOptions;
  #dryRuns = 0;
  #written = 0;

  constructor(options: PoolRoundOptions) {
    this.#options = options;
  }

  /** Returns whether the pool must be planned again because it changed meanwhile. */
  async run(): Promise<boolean> {
    const { isAllocatable, rises, deletes, writes, outdated } = this.#options.plan;
    const isDangerous = isAllocatable && rises;
    if (isDangerous || this.#options.memory.refused.isToBeChecked) {
      const verdict = await this.#check(writes.filter(({ isChanged }) => isChanged));
      if (verdict !== "accepted") return verdict === "again";
    }
    let again = false;
    for (const slice of deletes) {
      again =
        (await this.#try(slice.name, () => this.#options.requests.delete(slice, this.#options.signal))) ||
        again;
    }
    const refused: { write: SliceWrite; error: unknown }[] = [];
    const held: SliceWrite[] = [];
    const attempt = async (write: SliceWrite) => {
      const send = async () => {
        try {
          await this.#send(write);
        } catch (error) {
          if (!isRefusal(error)) throw error;
          refused.push({ write, error });
        }
      };
      again = (await this.#try(write.name, send)) || again;
    };
    await forEachAtMost(writes, MOST_WRITES_AT_ONCE, async (write) => {
      // If nothing was written yet, the first refusal most likely applies to all slices of the pool.
      if (refused.length > 0 && this.#written === 0) held.push(write);
      else await attempt(write);
    });
    // Sends the held writes once any slice was accepted, even an empty one or one that was in progress meanwhile.
    const continueHeld = async () => {
      if (this.#written > 0) await forEachAtMost(held.splice(0), MOST_WRITES_AT_ONCE, attempt);
    };
    await continueHeld();
    for (const { write, error } of refused) {
      again = (await this.#isolate(write, error)) || again;
      // No slice of the pool was accepted. The others would be refused for the same reason.
      if (this.#written === 0 && !again) break;
      await continueHeld();
    }
    if (again || refused.length > 0) return again;
    for (const slice of outdated) {
      const drop = async () => {
        await this.#options.requests.delete(slice, this.#options.signal);
        this.#options.result.outdated.push(slice.name);
      };
      await this.#try(slice.name, drop);
    }
    return false;
  }

  /** Sends the writes once. A later round handles those that are refused or conflict. */
  async attempt(): Promise<void> {
    for (const write of this.#options.plan.writes)
      try {
        await this.#send(write);
      } catch (error) {
        if (!isStale(error) && !isRefusal(error)) throw error;
      }
  }

  // Returns whether another client wrote meanwhile, so that the pool must be planned again.
  async #try(name: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return false;
    } catch (error) {
      if (isStale(error)) return true;
      if (!isRefusal(error)) throw error;
      this.#options.result.failures.set(name, error);
      return false;
    }
  }

  // Sends all writes as dry runs before anything is changed.
  async #check(writes: readonly SliceWrite[]): Promise<"accepted" | "again" | "refused"> {
    let verdict: "accepted" | "again" | "refused" = "accepted";
    await forEachAtMost(writes, MOST_WRITES_AT_ONCE, async (write) => {
      const { error, answer } = await this.#tryOut(write, write.devices);
      // The server changes the slice into what is stored, as an admission webhook may: nothing to write.
      if (answer && write.stored && this.#isStoredAs(write.stored, answer)) {
        const as = asSent(
          write,
          { metadata: write.stored.metadata },
          decodeSpec(this.#options.version, answer),
        );
        this.#options.cache.wrote({ metadata: write.stored.metadata }, { ...as, pool: write.stored.pool });
        verdict = "again";
      }
      if (error === undefined) return;
      if (isStale(error)) verdict = "again";
      else if (await this.#quarantine(write, error)) verdict = "again";
      else {
        this.#options.result.failures.set(write.name, error);
        if (verdict === "accepted") verdict = "refused";
      }
    });
    return verdict;
  }

  // Handles a refused write: completes the pool again, then finds the refused devices.
  async #isolate(write: SliceWrite, error: unknown): Promise<boolean> {
    const refusals = (this.#options.refusals.get(write.name) ?? 0) + 1;
    this.#options.refusals.set(write.name, refusals);
    const isInPlace = this.#options.plan.isAllocatable && !this.#options.plan.rises;
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
    this.#options.result.failures.set(write.name, error);
    return false;
  }

  // Not even an empty slice is accepted. If other slices of the pool were written, the pool continues without its
  // devices.
  #giveUp(write: SliceWrite, error: unknown): boolean {
    this.#options.result.failures.set(write.name, error);
    if (this.#written === 0) return false;
    this.#options.memory.refused.add(this.#options.plan.pool, write.devices, messageOf(error));
    return true;
  }

  // Returns whether the pool must be planned again: without the refused devices, or because none was found. An
  // admission webhook may accept in dry runs what it refuses otherwise: `isCertain` means that the refusal was
  // repeated.
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
    // If none is found, the server now accepts the slice, and it is written again unchanged.
    for (const { devices, message } of found)
      this.#options.memory.refused.add(this.#options.plan.pool, devices, message);
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

  /**
   * Returns why the server would refuse the slice with these devices. Undefined if it would not, or if that is unknown.
   */
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
      return {
        answer: await this.#options.requests.dryRun(await this.#encode(write, spec), this.#options.signal),
      };
    } catch (error) {
      if (lacksDryRun(error)) return {};
      if (isRefusal(error) || isStale(error)) return { error };
      throw error;
    }
  }

  #isStoredAs(stored: StoredSlice, answer: KubeObject): boolean {
    const other = storedSlice(this.#options.version, answer);
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
    await this.#options.requests.write(
      object,
      (answer) => this.#took(write, object, answer),
      this.#options.signal,
    );
    this.#written++;
    this.#options.result.writes++;
  }

  async #encode(write: SliceWrite, spec: SliceSpec): Promise<KubeObject> {
    const metadata = await this.#options.requests.metadataOf(
      write.stored ?? write.name,
      this.#options.signal,
    );
    return encodeSlice(this.#options.version, metadata, spec);
  }

  #took(write: SliceWrite, object: KubeObject, answer: KubeObject): StoredSlice {
    const stored = decodeSpec(this.#options.version, answer);
    if (!isSameJson(object.spec, answer.spec)) {
      const dropped = droppedFields(write.spec, stored);
      this.#options.result.dropped.push(
        ...dropped.map((field) => ({ pool: write.spec.pool.name, ...field })),
      );
      for (const { feature } of dropped) if (feature) this.#options.result.missing.add(feature);
    }
    return asSent(write, answer, stored);
  }
}

function isStored(device: CheckedDevice, stored: StoredDevice | undefined): boolean {
  return stored !== undefined && (stored.sent === device || stored.fingerprint === device.fingerprint);
}

// The devices come from the spec because it has the taints' times.
function specWith(spec: SliceSpec, devices: readonly CheckedDevice[]): SliceSpec {
  const names = new Set(devices.map(({ name }) => name));
  return { ...spec, ...(spec.devices && { devices: spec.devices.filter(({ name }) => names.has(name)) }) };
}
