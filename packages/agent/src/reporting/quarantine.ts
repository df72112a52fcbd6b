import { Backoff, type Clock, codeOf, messageOf, retryPolicies } from "@nodekeeper/core/lib";
import type { PluginContent } from "./content.ts";

type Contents = ReadonlyMap<string, PluginContent>;

/** A plugin's content that the API server does not take, and why. */
export interface Refusal {
  content: PluginContent;
  message: string;
  /** Monotonic milliseconds: newer content is not tried before. */
  until: number;
  /** The same for this very content: the server's rules may have changed by then. */
  recheckAt: number;
}

const RECHECK_MS = 600_000;

/** The contents to publish of one part of an object, where the server refuses some. */
export class Quarantine {
  readonly #clock: Clock;
  readonly #refusals = new Map<string, Refusal>();
  readonly #retries = new Map<string, Backoff>();
  // What the server last took of each plugin: published instead while its newer content is refused.
  #accepted = new Map<string, PluginContent>();
  #heldUntil = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get refusals(): ReadonlyMap<string, Refusal> {
    return this.#refusals;
  }

  /** When the first content that the last `filter` held back is to be tried, monotonic milliseconds. */
  get heldUntil(): number {
    return this.#heldUntil;
  }

  /** What is published instead of refused contents, by plugin. */
  get standIns(): Contents {
    return new Map([...this.#accepted].filter(([plugin]) => this.#refusals.has(plugin)));
  }

  /** The contents with each refused one replaced by the last that was taken. New content is tried when its time comes. */
  filter(contents: Contents): Contents {
    this.#heldUntil = Number.POSITIVE_INFINITY;
    if (this.#refusals.size === 0) return contents;
    const filtered = new Map(contents);
    for (const [plugin, { content, until, recheckAt }] of this.#refusals) {
      const current = contents.get(plugin);
      const due = current === content ? recheckAt : until;
      if (!current || due <= this.#clock.monotonic()) {
        this.#refusals.delete(plugin);
        continue;
      }
      this.#heldUntil = Math.min(this.#heldUntil, due);
      const accepted = this.#accepted.get(plugin);
      if (accepted) filtered.set(plugin, accepted);
      else filtered.delete(plugin);
    }
    return filtered;
  }

  /** Remembers what the server took: an outcome of `filter`. */
  accept(contents: Contents): void {
    this.#accepted = new Map(contents);
    for (const plugin of this.#retries.keys()) if (!this.#refusals.has(plugin)) this.#retries.delete(plugin);
  }

  /**
   * Finds whose content the server refuses: plugins are added one by one in name order, and one that turns a good
   * object into a refused one is quarantined; its last good content is tried in its place. `tryOut` asks the server
   * without changing anything and throws as the write would. Answers the plugins found.
   */
  async isolate(
    contents: Contents,
    contributors: readonly string[],
    tryOut: (contents: Contents) => Promise<void>,
  ): Promise<string[]> {
    const good = new Map<string, PluginContent>();
    const refusalOf = async (plugin: string, content: PluginContent): Promise<string | undefined> => {
      try {
        await tryOut(new Map(good).set(plugin, content));
        good.set(plugin, content);
        return undefined;
      } catch (error) {
        if (codeOf(error) !== "invalid") throw error;
        return messageOf(error);
      }
    };
    const found: string[] = [];
    for (const plugin of contributors) {
      const content = contents.get(plugin);
      if (!content) continue;
      const message = await refusalOf(plugin, content);
      if (message === undefined) continue;
      this.#refuse(plugin, content, message);
      found.push(plugin);
      const accepted = this.#accepted.get(plugin);
      const isStillGood =
        accepted && accepted !== content && (await refusalOf(plugin, accepted)) === undefined;
      if (!isStillGood) this.#accepted.delete(plugin);
    }
    return found;
  }

  #refuse(plugin: string, content: PluginContent, message: string): void {
    const retry = this.#retries.get(plugin) ?? new Backoff(retryPolicies.quarantinedReport);
    this.#retries.set(plugin, retry);
    const now = this.#clock.monotonic();
    this.#refusals.set(plugin, { content, message, until: now + retry.next(), recheckAt: now + RECHECK_MS });
  }
}
