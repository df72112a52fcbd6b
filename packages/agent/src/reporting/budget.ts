import type { PluginContent } from "./content.ts";
import { OBJECT_BUDGET_BYTES } from "./kinds.ts";
import type { Contents } from "./part-writer.ts";

const MIN_BUDGET_BYTES = 64 * 1024;
// After the server rejects an object as too large, the limit is set to this share of the rejected size.
const SHRINK = 0.75;

/** A plugin whose content is quarantined because the object would exceed its size limit. */
export interface OversizedContent {
  plugin: string;
  message: string;
  isNew: boolean;
}

/**
 * Keeps one object within the size that etcd accepts, so that one plugin cannot block updates for all others. While the
 * merged contents exceed the limit, the largest one is replaced by its last known good content, or left out if that is
 * too large as well.
 */
export class Budget {
  readonly #object: string;
  readonly #sizes = new WeakMap<PluginContent, number>();
  #limit = OBJECT_BUDGET_BYTES;
  #total = 0;
  #taken: Contents = new Map();
  #held: ReadonlyMap<string, string> = new Map();

  /** @param object `kindKey` */
  constructor(object: string) {
    this.#object = object;
  }

  /** Reasons for quarantined contents, by plugin. */
  get held(): ReadonlyMap<string, string> {
    return this.#held;
  }

  /** Splits contents into those that are published and those that are quarantined. */
  publishable(contents: Contents): { contents: Contents; held: readonly OversizedContent[] } {
    const sizes = new Map([...contents].map(([plugin, content]) => [plugin, this.#sizeOf(content)]));
    let total = sum(sizes.values());
    const fitting = new Map(contents);
    const held = new Map<string, string>();
    while (total > this.#limit) {
      const [plugin, size] = largest(sizes);
      const message = `its ${kib(this.#sizeOf(contents.get(plugin)!))} would make the object larger than the limit of ${kib(this.#limit)}, and it is the largest contributor`;
      held.set(plugin, message);
      const last = fitting.get(plugin) === contents.get(plugin) ? this.#taken.get(plugin) : undefined;
      const lastSize = last ? this.#sizeOf(last) : 0;
      const isSmaller = last !== undefined && lastSize < size;
      if (isSmaller) fitting.set(plugin, last);
      else fitting.delete(plugin);
      sizes.set(plugin, isSmaller ? lastSize : 0);
      total += (isSmaller ? lastSize : 0) - size;
    }
    const before = this.#held;
    this.#held = held;
    this.#total = total;
    if (held.size === 0) return { contents, held: [] };
    const all = [...held].map(([plugin, message]) => ({ plugin, message, isNew: !before.has(plugin) }));
    return { contents: fitting, held: all };
  }

  /** Records contents that the server accepted as the plugins' last known good contents. */
  accepted(contents: Contents): void {
    this.#taken = contents;
  }

  /** Lowers the limit after the server rejected an object within it. */
  shrink(): void {
    this.#limit = Math.max(Math.floor(this.#total * SHRINK), MIN_BUDGET_BYTES);
  }

  /** Restores the initial limit, since the server's own limit may have changed. */
  reset(): void {
    this.#limit = OBJECT_BUDGET_BYTES;
  }

  #sizeOf(content: PluginContent): number {
    const known = this.#sizes.get(content);
    if (known !== undefined) return known;
    const fields = content.fields.filter(({ object }) => object === this.#object);
    const size = sum(fields.map(({ bytes }) => bytes));
    this.#sizes.set(content, size);
    return size;
  }
}

function largest(sizes: ReadonlyMap<string, number>): [plugin: string, size: number] {
  let found: [string, number] = ["", -1];
  for (const entry of sizes) if (entry[1] > found[1]) found = entry;
  return found;
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const each of numbers) total += each;
  return total;
}

function kib(bytes: number): string {
  return `${Math.ceil(bytes / 1024)} KiB`;
}
