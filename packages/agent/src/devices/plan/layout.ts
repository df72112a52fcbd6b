import type { CheckedDevice } from "../model/checked.ts";
import { limits } from "../model/limits.ts";

/*
 * Assigns devices to slices. Groups of devices keep the driver's order, and groups in order are assigned to slices in
 * the order of their names. Devices stay in their slice if possible, because moving one to another slice requires
 * writing the entire pool. Otherwise the pool is laid out again, with space in each slice for later changes.
 */

/** The parts of an existing slice that the layout needs. Slots are sorted by name. */
export interface Slot {
  /** Undefined if the name has no index. */
  index: number | undefined;
  /** Names of its devices. */
  devices: readonly string[];
}

/** Devices of one slice: in an existing slot, or in a new one with this index. */
export interface Group {
  slot: number | undefined;
  index: number | undefined;
  devices: CheckedDevice[];
}

export interface LayoutOptions {
  /** Number of slots that readers expect but another client deleted. */
  missing: number;
  /** Exclusive upper bound of the indices for devices. */
  endIndex: number;
  /** Returns whether a new slice may have this index. */
  isFree(index: number): boolean;
}

/** Assigns devices to slices. Returns one empty group for an empty list. */
export function layOut(
  devices: readonly CheckedDevice[],
  slots: readonly Slot[],
  options: LayoutOptions,
): Group[] {
  return keepPlaces(devices, slots, options) ?? layOutAgain(devices, slots, options);
}

// Applies one limit to the entire pool, not one per slice: taints come and go with health. A slice of more than 64
// devices would have to be split, and the pool rewritten, at the first taint of any of its devices.
function layOutAgain(
  devices: readonly CheckedDevice[],
  slots: readonly Slot[],
  { endIndex, isFree }: LayoutOptions,
): Group[] {
  const count = fewestGroups(devices);
  let usable = slots.flatMap(({ index }, slot) => (index === undefined ? [] : [{ slot, index }]));
  if ((usable.at(-1)?.index ?? 0) + count >= endIndex) usable = [];
  let index = -1;
  return evenParts(devices, count).map((part, at) => {
    const present = usable[at];
    index = present?.index ?? nextFree(index + 1, isFree);
    return { slot: present?.slot, index, devices: part };
  });
}

function keepPlaces(
  devices: readonly CheckedDevice[],
  slots: readonly Slot[],
  options: LayoutOptions,
): Group[] | undefined {
  if (slots.length === 0) return undefined;
  const anchors = anchorsOf(devices, slots);
  if (!anchors) return undefined;
  const places = new Places(slots, options);
  for (const [at, slot] of anchors.entries()) if (slot >= 0) places.claim(slot, devices[at]!);

  let previous = -1;
  for (let at = 0; at < devices.length; ) {
    const anchor = anchors[at]!;
    if (anchor >= 0) {
      places.add(anchor, devices[at]!);
      previous = anchor;
      at++;
      continue;
    }
    let end = at + 1;
    while (end < devices.length && anchors[end]! < 0) end++;
    const next = end < devices.length ? anchors[end]! : slots.length;
    if (!places.insert(devices.slice(at, end), previous, next)) return undefined;
    at = end;
  }
  return places.groups(devices);
}

/** Groups being filled. */
class Places {
  readonly #slots: readonly Slot[];
  readonly #options: LayoutOptions;
  readonly #filled: CheckedDevice[][];
  // Devices assigned to each slot so far, to decide whether more fit.
  readonly #sizes: number[];
  readonly #advanced: boolean[];
  // New groups, by the slot that they follow.
  readonly #added = new Map<number, Group[]>();
  #missing: number;

  constructor(slots: readonly Slot[], options: LayoutOptions) {
    this.#slots = slots;
    this.#options = options;
    this.#filled = slots.map(() => []);
    this.#sizes = slots.map(() => 0);
    this.#advanced = slots.map(() => false);
    this.#missing = options.missing;
  }

  claim(slot: number, device: CheckedDevice): void {
    this.#sizes[slot]!++;
    if (device.advanced) this.#advanced[slot] = true;
  }

  add(slot: number, device: CheckedDevice): void {
    this.#filled[slot]!.push(device);
  }

  /**
   * Inserts devices between those of two slots, where -1 and the number of slots are the ends. Returns false if they
   * don't fit.
   */
  insert(run: CheckedDevice[], previous: number, next: number): boolean {
    if (previous === next) return this.#fill(run, previous);
    for (let slot = previous + 1; slot < next; slot++) {
      if (this.#sizes[slot] === 0 && this.#fill(run, slot)) return true;
    }
    if (this.#missing > 0 && this.#create(run, previous, next)) return true;
    if (previous >= 0 && this.#fill(run, previous)) return true;
    if (next < this.#slots.length && this.#fill(run, next)) return true;
    return this.#create(run, previous, next);
  }

  /** Returns all groups in order. Undefined if a group exceeds a limit or too many groups are nearly empty. */
  groups(devices: readonly CheckedDevice[]): Group[] | undefined {
    const groups: Group[] = [];
    for (let slot = -1; slot < this.#slots.length; slot++) {
      const filled = this.#filled[slot];
      if (filled?.length) {
        if (filled.length > capacity(this.#advanced[slot]!)) return undefined;
        groups.push({ slot, index: this.#slots[slot]!.index, devices: filled });
      }
      groups.push(...(this.#added.get(slot) ?? []));
    }
    const fewest = fewestGroups(devices);
    if (groups.length === 0 || groups.length > 2 * fewest) return undefined;
    const halfFull = capacity(devices.some(isAdvanced)) / 2;
    return fewest === 1 && groups.length > 1 && devices.length <= halfFull ? undefined : groups;
  }

  #fill(run: CheckedDevice[], slot: number): boolean {
    const advanced = this.#advanced[slot]! || run.some(isAdvanced);
    const size = this.#sizes[slot]! + run.length;
    if (size > capacity(advanced)) return false;
    this.#sizes[slot] = size;
    this.#advanced[slot] = advanced;
    this.#filled[slot]!.push(...run);
    return true;
  }

  #create(run: CheckedDevice[], previous: number, next: number): boolean {
    const low = previous < 0 ? -1 : this.#slots[previous]!.index;
    const high = next < this.#slots.length ? this.#slots[next]!.index : this.#options.endIndex;
    if (low === undefined || high === undefined || this.#added.has(previous)) return false;
    const fewest = fewestGroups(run);
    const wanted = Math.min(run.length, Math.max(fewest, this.#missing));
    const indices: number[] = [];
    for (let index = low + 1; index < high && indices.length < wanted; index++) {
      if (this.#options.isFree(index)) indices.push(index);
    }
    if (indices.length < fewest) return false;
    this.#added.set(
      previous,
      evenParts(run, indices.length).map((devices, at) => ({ slot: undefined, index: indices[at], devices })),
    );
    this.#missing -= indices.length;
    return true;
  }
}

// Returns for each device the slot that it stays in, -1 for a new device. Undefined if devices of different slots
// changed places: several slices change then, and the entire pool is written anyway.
function anchorsOf(devices: readonly CheckedDevice[], slots: readonly Slot[]): Int32Array | undefined {
  const slotOf = new Map<string, number>();
  for (const [slot, { devices: names }] of slots.entries()) {
    for (const name of names) if (!slotOf.has(name)) slotOf.set(name, slot);
  }
  const anchors = Int32Array.from(devices, ({ name }) => slotOf.get(name) ?? -1);
  let last = -1;
  for (const slot of anchors) {
    if (slot < 0) continue;
    if (slot < last) return undefined;
    last = slot;
  }
  return anchors;
}

function fewestGroups(devices: readonly CheckedDevice[]): number {
  return Math.max(1, Math.ceil(devices.length / capacity(devices.some(isAdvanced))));
}

function evenParts(devices: readonly CheckedDevice[], count: number): CheckedDevice[][] {
  return Array.from({ length: count }, (_, at) =>
    devices.slice(Math.floor((at * devices.length) / count), Math.floor(((at + 1) * devices.length) / count)),
  );
}

function capacity(advanced: boolean): number {
  return advanced ? limits.advancedDevicesPerSlice : limits.devicesPerSlice;
}

function isAdvanced({ advanced }: CheckedDevice): boolean {
  return advanced;
}

function nextFree(from: number, isFree: (index: number) => boolean): number {
  let index = from;
  while (!isFree(index)) index++;
  return index;
}
