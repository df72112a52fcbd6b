import { Backoff, type Clock, codeOf, messageOf, retryPolicies } from "@nodekeeper/core/lib";
import type { Contents, PluginContent } from "./content.ts";
import { PREDECESSOR } from "./rank.ts";

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

// A single refusal of published content, for example by a faulty admission policy, must not withdraw it.
const REFUSALS_UNTIL_WITHDRAWN = 3;

/**
 * Selects the contents to publish for one part of an object while the server rejects some of them.
 *
 * 1. Last known good content is withdrawn only if the server rejects it in three attempts in a row.
 * 2. Fields of earlier agent processes are never quarantined: no plugin is responsible for them.
 */
export class Quarantine {
  readonly #clock: Clock;
  readonly #refusals = new Map<string, Refusal>();
  readonly #retries = new Map<string, Backoff>();
  // Last known good content of each plugin, published while its newer content is rejected.
  #accepted = new Map<string, PluginContent>();
  #nextRetryAt = Number.POSITIVE_INFINITY;
  // Attempts in a row in which the server rejected what is published.
  #refusedInARow = 0;

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
    this.#refusedInARow = 0;
    for (const plugin of this.#retries.keys()) if (!this.#refusals.has(plugin)) this.#retries.delete(plugin);
  }

  /** Adds last known good contents from before the agent's start, for plugins that have none yet. */
  restore(contents: Contents): void {
    this.#accepted = new Map([...contents, ...this.#accepted]);
  }

  /**
   * Finds and quarantines the plugins whose content the server rejects. Returns their names. Replaces the published
   * contents one by one with the current ones, in the given order; a plugin is quarantined if its replacement is
   * rejected. If the server rejects the published contents themselves, no plugin can be held responsible: throws the
   * server's error. At the third such attempt in a row, examines the published contents one by one, too.
   * @param tryOut performs a dry run and throws as the write would
   */
  async isolate(
    contents: Contents,
    contributors: readonly string[],
    tryOut: (contents: Contents) => Promise<void>,
  ): Promise<string[]> {
    const good = await this.#base(this.#publishedOf(contents, contributors), tryOut);
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
      if (!content || good.get(plugin) === content) continue;
      const message = await refusalOf(plugin, content);
      if (message === undefined) continue;
      this.#refuse(plugin, content, message);
      found.push(plugin);
      if (good.has(plugin)) continue;
      const accepted = this.#accepted.get(plugin);
      const isStillGood =
        accepted && accepted !== content && (await refusalOf(plugin, accepted)) === undefined;
      if (!isStillGood) this.#accepted.delete(plugin);
    }
    return found;
  }

  // What is published of the contributors, as far as it is known.
  #publishedOf(contents: Contents, contributors: readonly string[]): Map<string, PluginContent> {
    const published = new Map<string, PluginContent>();
    for (const plugin of contributors) {
      const content = (plugin === PREDECESSOR ? contents : this.#accepted).get(plugin);
      if (content) published.set(plugin, content);
    }
    return published;
  }

  // Returns the contents that need no examination.
  async #base(
    published: Map<string, PluginContent>,
    tryOut: (contents: Contents) => Promise<void>,
  ): Promise<Map<string, PluginContent>> {
    if (published.size === 0) return published;
    try {
      await tryOut(published);
      this.#refusedInARow = 0;
      return published;
    } catch (error) {
      if (codeOf(error) !== "invalid" || ++this.#refusedInARow < REFUSALS_UNTIL_WITHDRAWN) throw error;
    }
    const base = new Map([...published].filter(([plugin]) => plugin === PREDECESSOR));
    if (base.size > 0) await tryOut(base);
    return base;
  }

  #refuse(plugin: string, content: PluginContent, message: string): void {
    const retry = this.#retries.get(plugin) ?? new Backoff(retryPolicies.quarantinedReport);
    this.#retries.set(plugin, retry);
    const now = this.#clock.monotonic();
    this.#refusals.set(plugin, { content, message, until: now + retry.next(), recheckAt: now + RECHECK_MS });
  }
}
