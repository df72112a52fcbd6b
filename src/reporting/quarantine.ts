import { codeOf, messageOf } from "../lib/index.ts";
import type { PluginContent } from "./content.ts";

/** A plugin's content that the API server does not take, and why. */
export interface Refusal {
  content: PluginContent;
  message: string;
}

/** The contents to publish of one object, where the server refused some. */
export class Quarantine {
  readonly #refusals = new Map<string, Refusal>();
  // What the server last took of each plugin: published instead while its newer content is refused.
  #accepted: ReadonlyMap<string, PluginContent> = new Map();

  get refusals(): ReadonlyMap<string, Refusal> {
    return this.#refusals;
  }

  /** The contents with each refused one replaced by the last that was taken. A plugin's new content is tried again. */
  filter(contents: ReadonlyMap<string, PluginContent>): ReadonlyMap<string, PluginContent> {
    if (this.#refusals.size === 0) return contents;
    const filtered = new Map(contents);
    for (const [plugin, { content }] of this.#refusals) {
      if (contents.get(plugin) !== content) {
        this.#refusals.delete(plugin);
        continue;
      }
      const accepted = this.#accepted.get(plugin);
      if (accepted) filtered.set(plugin, accepted);
      else filtered.delete(plugin);
    }
    return filtered;
  }

  /** Remembers what the server took. */
  accept(contents: ReadonlyMap<string, PluginContent>): void {
    this.#accepted = contents;
  }

  /**
   * Finds whose content the server refuses: plugins are added one by one in name order, and each that turns a
   * good object into a refused one is quarantined. `tryOut` asks the server without changing anything and throws
   * as the write would. True where a culprit was found.
   */
  async isolate(
    contents: ReadonlyMap<string, PluginContent>,
    contributors: readonly string[],
    tryOut: (contents: ReadonlyMap<string, PluginContent>) => Promise<void>,
  ): Promise<boolean> {
    const good = new Map<string, PluginContent>();
    let found = false;
    for (const plugin of contributors) {
      const content = contents.get(plugin);
      if (!content) continue;
      try {
        await tryOut(new Map(good).set(plugin, content));
        good.set(plugin, content);
      } catch (error) {
        if (codeOf(error) !== "invalid") throw error;
        this.#refusals.set(plugin, { content, message: messageOf(error) });
        found = true;
        const accepted = this.#accepted.get(plugin);
        if (accepted) good.set(plugin, accepted);
      }
    }
    return found;
  }
}
