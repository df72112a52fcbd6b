import { type Contents, noContent, type PluginContent } from "./content.ts";
import { OBJECT_BUDGET_BYTES } from "./kinds.ts";

const MIN_BUDGET_BYTES = 64 * 1024;
// If the server rejects an object as too large, the limit becomes this fraction of the rejected size.
const SHRINK = 0.75;
// Fraction of the limit that is divided into the plugins' shares.
const SHARED_OUT = 1 / 8;
/** Minimum number of shares, regardless of how many plugins report. */
export const RESERVED_SHARES = 16;

/** A plugin whose content is quarantined because the object would exceed its size limit. */
export interface OversizedContent {
  plugin: string;
  message: string;
  isNew: boolean;
}

/**
 * Keeps one object within the size that etcd accepts, so that one plugin cannot block updates of all others.
 *
 * 1. Each plugin has a share: an eighth of the limit, divided by the number of plugins, but at least by 16. Content
 *    within its plugin's share is always published.
 * 2. Content that grew beyond its share is published if it fits into the space left by the shares and the other
 *    contents. Otherwise it is quarantined, and the plugin's last known good content remains published.
 * 3. Content that did not grow remains published. It is quarantined only if the limit was lowered, or if more than 16
 *    plugins need their shares; then the largest content above its share is quarantined first.
 */
export class Budget {
  readonly #object: string;
  readonly #sizes = new WeakMap<PluginContent, number>();
  #limit = OBJECT_BUDGET_BYTES;
  #total = 0;
  #accepted: Contents = new Map();
  #held: ReadonlyMap<string, string> = new Map();
  #lastGood: Contents = new Map();

  /** @param object the object's `kindKey` */
  constructor(object: string) {
    this.#object = object;
  }

  /** Reasons of quarantined contents, by plugin. */
  get held(): ReadonlyMap<string, string> {
    return this.#held;
  }

  /** Last known good contents published for the plugins in `held`. Without fields if a plugin has none. */
  get lastGood(): Contents {
    return this.#lastGood;
  }

  /** Separates contents to publish from those to quarantine. */
  publishable(contents: Contents): { contents: Contents; held: readonly OversizedContent[] } {
    const share = (this.#limit * SHARED_OUT) / Math.max(contents.size, RESERVED_SHARES);
    const excessOf = (content: PluginContent) => Math.max(this.#sizeOf(content) - share, 0);
    const chosen = this.#withoutGrown(contents, share);
    this.#dropLargest(chosen, excessOf);
    const room = this.#limit * (1 - SHARED_OUT);
    let excess = sum([...chosen.values()].map(excessOf));
    const left = new Map<string, number>();
    for (const [plugin, content] of this.#missing(contents, chosen)) {
      const others = excess - excessOf(chosen.get(plugin)!);
      left.set(plugin, Math.max(room - others, 0) + share);
      if (others + excessOf(content) > room) continue;
      excess = others + excessOf(content);
      chosen.set(plugin, content);
    }
    const missing = this.#missing(contents, chosen);
    const before = this.#held;
    this.#total = sum([...chosen.values()].map((content) => this.#sizeOf(content)));
    this.#held = new Map(
      missing.map(([plugin, content]) => [
        plugin,
        this.#reason(content, chosen.get(plugin)!, left.get(plugin)!),
      ]),
    );
    this.#lastGood = new Map(missing.map(([plugin]) => [plugin, chosen.get(plugin)!]));
    if (missing.length === 0) return { contents, held: [] };
    const held = [...this.#held].map(([plugin, message]) => ({
      plugin,
      message,
      isNew: !before.has(plugin),
    }));
    return { contents: new Map([...chosen].filter(([, { fields }]) => fields.length > 0)), held };
  }

  /** Records contents that the server accepted as last known good contents. */
  accepted(contents: Contents): void {
    this.#accepted = contents;
  }

  /** Adds last known good contents from before the agent's start, for plugins that have none yet. */
  restore(contents: Contents): void {
    this.#accepted = new Map([...contents, ...this.#accepted]);
  }

  /**
   * Lowers the limit after the server rejected an object within it, but not below the size that the server last
   * accepted.
   */
  shrink(): void {
    const accepted = sum([...this.#accepted.values()].map((content) => this.#sizeOf(content)));
    const least = accepted < this.#total ? accepted : 0;
    this.#limit = Math.max(Math.floor(this.#total * SHRINK), least, MIN_BUDGET_BYTES);
  }

  /** Restores the initial limit, because the server's limit may have changed. */
  reset(): void {
    this.#limit = OBJECT_BUDGET_BYTES;
  }

  #lastGoodOf(plugin: string): PluginContent {
    return this.#accepted.get(plugin) ?? noContent;
  }

  // Returns the contents within their share or not larger than before. Others are replaced by their last known good
  // content.
  #withoutGrown(contents: Contents, share: number): Map<string, PluginContent> {
    const chosen = new Map<string, PluginContent>();
    for (const [plugin, content] of contents) {
      const last = this.#lastGoodOf(plugin);
      const isGrown = this.#sizeOf(content) > Math.max(share, this.#sizeOf(last));
      chosen.set(plugin, isGrown ? last : content);
    }
    return chosen;
  }

  #dropLargest(chosen: Map<string, PluginContent>, excessOf: (content: PluginContent) => number): void {
    let total = sum([...chosen.values()].map((content) => this.#sizeOf(content)));
    if (total <= this.#limit) return;
    const largestFirst = [...chosen].sort(([, a], [, b]) => this.#sizeOf(b) - this.#sizeOf(a));
    for (const [plugin, content] of largestFirst) {
      if (total <= this.#limit || excessOf(content) === 0) return;
      chosen.set(plugin, noContent);
      total -= this.#sizeOf(content);
    }
  }

  // Returns the contents that are not chosen, smallest first, so that as many as possible fit.
  #missing(contents: Contents, chosen: Contents): [plugin: string, PluginContent][] {
    const missing = [...contents].filter(([plugin, content]) => chosen.get(plugin) !== content);
    return missing.sort(
      ([a, one], [b, other]) => this.#sizeOf(one) - this.#sizeOf(other) || (a < b ? -1 : 1),
    );
  }

  #reason(content: PluginContent, published: PluginContent, left: number): string {
    const stays =
      this.#sizeOf(published) === 0
        ? "nothing of it is published for now"
        : `its last known good content of ${kib(this.#sizeOf(published))} stays published`;
    return `its ${kib(this.#sizeOf(content))} would make the object larger than the limit of ${kib(this.#limit)}: ${Math.floor(left / 1024)} KiB are left for it; ${stays}`;
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

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const each of numbers) total += each;
  return total;
}

function kib(bytes: number): string {
  return `${Math.ceil(bytes / 1024)} KiB`;
}
