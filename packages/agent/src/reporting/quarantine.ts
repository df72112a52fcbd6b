import { Backoff, type Clock, codeOf, messageOf, retryPolicies } from "@nodekeeper/core/lib";
import type { Contents, PluginContent } from "./content.ts";

/** A plugin's content that the API server rejected, and the reason. */
export interface Refusal {
  content: PluginContent;
  message: string;
  /** Monotonic milliseconds before which newer content is not tried. */
  until: number;
  /** The same for unchanged content. The server's validation may have changed by then. */
  recheckAt: number;
}

const RECHECK_MS = 600_000;

/** Selects the contents to publish for one part of an object while the server rejects some of them. */
export class Quarantine {
  readonly #clock: Clock;
  readonly #refusals = new Map<string, Refusal>();
  readonly #retries = new Map<string, Backoff>();
  // Last known good content of each plugin, published while its newer content is rejected.
  #accepted = new Map<string, PluginContent>();
  #nextRetryAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get refusals(): ReadonlyMap<string, Refusal> {
    return this.#refusals;
  }

  /**
   * Time of the next retry of content quarantined by the last `filter`, in monotonic milliseconds. Infinity if there is
   * none.
   */
  get nextRetryAt(): number {
    return this.#nextRetryAt;
  }

  /** Last known good contents of quarantined plugins, which are published instead. */
  get lastGood(): Contents {
    return new Map([...this.#accepted].filter(([plugin]) => this.#refusals.has(plugin)));
  }

  /** Replaces quarantined contents with the plugins' last known good ones, unless a retry is due. */
  filter(contents: Contents): Contents {
    this.#nextRetryAt = Number.POSITIVE_INFINITY;
    if (this.#refusals.size === 0) return contents;
    const filtered = new Map(contents);
    for (const [plugin, { content, until, recheckAt }] of this.#refusals) {
      const current = contents.get(plugin);
      const due = current === content ? recheckAt : until;
      if (!current || due <= this.#clock.monotonic()) {
        this.#refusals.delete(plugin);
        continue;
      }
      this.#nextRetryAt = Math.min(this.#nextRetryAt, due);
      const accepted = this.#accepted.get(plugin);
      if (accepted) filtered.set(plugin, accepted);
      else filtered.delete(plugin);
    }
    return filtered;
  }

  /** Records contents that the server accepted: a result of `filter`. */
  accept(contents: Contents): void {
    this.#accepted = new Map(contents);
    for (const plugin of this.#retries.keys()) if (!this.#refusals.has(plugin)) this.#retries.delete(plugin);
  }

  /** Adds last known good contents from before the agent's start, for plugins that have none yet. */
  restore(contents: Contents): void {
    this.#accepted = new Map([...contents, ...this.#accepted]);
  }

  /**
   * Finds the plugins whose content the server rejects. Adds plugins one by one in the given order. A plugin whose
   * content causes a rejection is quarantined, and its last known good content is tried instead. Returns the
   * quarantined plugins.
   * @param tryOut performs a dry run and throws as the write would
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
