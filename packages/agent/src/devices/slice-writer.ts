import type { KubeObject } from "@nodekeeper/core/kube";
import { messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import { fieldsText, sameTaint, sameTaints } from "./canonical.ts";
import type { CheckedDevice, CheckedPool, StoredDevice, StoredSlice } from "./checked.ts";
import type { Desired } from "./driver.ts";
import { taintsOf } from "./feature-bits.ts";
import { droppedFields } from "./features.ts";
import type { DeviceTaint, SliceSpec } from "./model.ts";
import { writeModels } from "./model-writer.ts";
import { type PlanMemory, type PoolPlan, planSlices, type SliceWrite } from "./plan.ts";
import type { RefusedDevices } from "./refused-devices.ts";
import { isStale } from "./slice-api.ts";
import type { SliceCache } from "./slice-cache.ts";
import { forEachAtMost, isRefusal, lacksDryRun, type SliceRequests } from "./slice-requests.ts";
import { decodeSpec, encodeSlice, isSameJson, type SliceVersion, storedSlice } from "./versions.ts";
import type { WriteResult } from "./write-result.ts";

/** What is remembered of a driver's slices beside the slices. */
export interface DriverSlices {
  /** Devices that the server refuses. */
  readonly refused: RefusedDevices;
  readonly plans: PlanMemory;
}

const MOST_WRITES_AT_ONCE = 8;
// Each turn finds more refused devices, or meets another client's write.
const MOST_TURNS = 10;
const MOST_DRY_RUNS = 128;

/**
 * Brings the slices of one driver to the desired state.
 *
 * 1. A pool from which the scheduler allocates is not broken by a slice that the server refuses: where a pool's
 *    generation is to rise, its changed slices are sent as dry runs first.
 * 2. The devices for which a slice is refused are found by halving it, and quarantined; the others are written.
 * 3. Where a write is refused although its pool already rises, the slice is written without devices at once, so that the
 *    pool is complete again, and then halved.
 * 4. What the server stores differently from what was sent is taken as the answer to it: the same is not sent again.
 */
export class SliceWriter {
  readonly #requests: SliceRequests;
  readonly #cache: SliceCache;

  constructor(requests: SliceRequests, cache: SliceCache) {
    this.#requests = requests;
    this.#cache = cache;
  }

  /** Throws what concerns all slices: the server is out of reach. What concerns one is in the result. */
  async write(
    driver: string,
    desired: Desired,
    memory: DriverSlices,
    signal: AbortSignal,
  ): Promise<WriteResult> {
    const result: WriteResult = {
      writes: 0,
      failures: new Map(),
      dropped: [],
      missing: new Set(),
      outdated: [],
    };
    const { version } = this.#requests.api;
    if (version === "v1alpha2") {
      await writeModels(this.#requests, this.#cache, driver, desired.models, result, signal);
      return result;
    }
    const refusals = new Map<string, number>();
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      const plans = this.#plan(driver, memory.refused.without(desired.pools), memory.plans);
      result.failures.clear();
      let again = false;
      for (const plan of plans) {
        const round = new PoolRound(
          this.#requests,
          this.#cache,
          version,
          plan,
          memory,
          result,
          refusals,
          signal,
        );
        again = (await round.run()) || again;
      }
      memory.refused.checked();
      if (!again) return result;
    }
    // Tried again after a while.
    const message = `the slices of ${driver} are not as planned after ${MOST_TURNS} attempts`;
    result.failures.set(driver, new NodekeeperError("conflict", message));
    return result;
  }

  #plan(driver: string, pools: readonly CheckedPool[], memory: PlanMemory): PoolPlan[] {
    return planSlices({
      driver,
      nodeName: this.#requests.nodeName,
      pools,
      stored: this.#cache.of(driver) as StoredSlice[],
      foreign: this.#cache.foreignOf(driver),
      memory,
    });
  }
}

/** One turn of writing one pool. */
class PoolRound {
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

  // Not even an empty slice is accepted. With others of the pool already there, the pool goes on without its devices.
  #giveUp(write: SliceWrite, error: unknown): boolean {
    this.#result.failures.set(write.name, error);
    if (this.#written === 0) return false;
    this.#memory.refused.add(this.#plan.pool, write.devices, messageOf(error));
    return true;
  }

  // Answers whether the pool is to be planned again: without the devices to blame, or because there are none.
  // An admission webhook may accept in dry runs what it refuses: `isCertain` says that the refusal is no accident.
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

  /** Why the server would refuse the slice with these devices; undefined where it would not, or can't say. */
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

// The slice as it was sent, with the metadata and the taints' times of the answer.
function asSent(
  { spec, devices, counterSets }: SliceWrite,
  answer: KubeObject,
  stored: SliceSpec,
): StoredSlice {
  const { managedFields, ...metadata } = answer.metadata;
  const taints = new Map(stored.devices?.flatMap(({ name, taints }) => (taints ? [[name, taints]] : [])));
  return {
    metadata,
    name: metadata.name ?? "",
    driver: spec.driver,
    pool: spec.pool,
    fields: fieldsText(spec),
    devices: devices.map((device) => new SentDevice(device, taints.get(device.name))),
    counterSets: counterSets.map(({ fingerprint }) => fingerprint),
    isMarked: true,
  };
}

class SentDevice implements StoredDevice {
  readonly sent: CheckedDevice;
  readonly taints?: DeviceTaint[];

  constructor(sent: CheckedDevice, answered: DeviceTaint[] | undefined) {
    this.sent = sent;
    const taints = taintsOf(sent);
    if (!taints?.length) return;
    this.taints = taints.map((taint) => {
      const timeAdded = taint.timeAdded ?? answered?.find((other) => sameTaint(taint, other))?.timeAdded;
      return timeAdded === undefined ? taint : { ...taint, timeAdded };
    });
  }

  get name(): string {
    return this.sent.name;
  }

  get fingerprint(): string {
    return this.sent.fingerprint;
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
