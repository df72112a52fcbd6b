import type { PluginContent } from "./content.ts";
import { isObject, type Json } from "./json.ts";
import { OBJECT_BUDGET_BYTES } from "./kinds.ts";
import type { Contents } from "./part-writer.ts";

const LEAST_BUDGET_BYTES = 64 * 1024;
// A server that takes less is asked again with this share of what it refused.
const SHRINK = 0.75;

/** A plugin whose content is not published because the object would be too large. */
export interface HeldBack {
  plugin: string;
  message: string;
  isNew: boolean;
}

/**
 * Keeps one object within a size that etcd takes, so that one plugin can't freeze it for all: while the contents are
 * too large together, the largest contributor's is replaced by the last one that the server took, and left out
 * where that is too large as well.
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

  /** Why contents are held back, by plugin. */
  get held(): ReadonlyMap<string, string> {
    return this.#held;
  }

  /** The contents that are published, and what is held back of them. */
  publishable(contents: Contents): { contents: Contents; held: readonly HeldBack[] } {
    const sizes = new Map([...contents].map(([plugin, content]) => [plugin, this.#sizeOf(content)]));
    let total = sum(sizes.values());
    const fitting = new Map(contents);
    const held = new Map<string, string>();
    while (total > this.#limit) {
      const [plugin, size] = largest(sizes);
      const message = `with its ${kib(this.#sizeOf(contents.get(plugin)!))} the object would be larger than ${kib(this.#limit)}, and no other plugin reports more`;
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

  /** The server took these: what is published of a plugin whose newer content has no room. */
  took(contents: Contents): void {
    this.#taken = contents;
  }

  /** The server refused what had room by our count: the next one has to be smaller. */
  shrink(): void {
    this.#limit = Math.max(Math.floor(this.#total * SHRINK), LEAST_BUDGET_BYTES);
  }

  /** The server may take more by now. */
  reset(): void {
    this.#limit = OBJECT_BUDGET_BYTES;
  }

  #sizeOf(content: PluginContent): number {
    const known = this.#sizes.get(content);
    if (known !== undefined) return known;
    const fields = content.fields.filter(({ object }) => object === this.#object);
    const size = sum(fields.map(({ name, value }) => name.length + storedBytes(value)));
    this.#sizes.set(content, size);
    return size;
  }
}

/** What a value takes in the stored object, bytes, about: its JSON, and its fields in managedFields. */
function storedBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value)) + fieldSetBytes(value);
}

// `"f:name":{},` for each member of a map. A list is one field, whatever is in it.
function fieldSetBytes(value: Json): number {
  if (!isObject(value)) return 0;
  return sum(
    Object.entries(value).map(([key, member]) => Buffer.byteLength(key) + 8 + fieldSetBytes(member)),
  );
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
