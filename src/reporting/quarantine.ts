import { codeOf, messageOf } from "../lib/index.ts";
import type { PluginContent } from "./content.ts";

type Contents = ReadonlyMap<string, PluginContent>;

/** A plugin's content that the API server does not take, and why. */
export interface Refusal {
  content: PluginContent;
  message: string;
}

/** The contents to publish of one part of an object, where the server refuses some. */
export class Quarantine {
  readonly #refusals = new Map<string, Refusal>();
  // What the server last took of each plugin: published instead while its newer content is refused.
  #accepted = new Map<string, PluginContent>();

  get refusals(): ReadonlyMap<string, Refusal> {
    return this.#refusals;
  }

  /** The contents with each refused one replaced by the last that was taken. A plugin's new content is tried again. */
  filter(contents: Contents): Contents {
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

  /** Remembers what the server took: an outcome of `filter`. */
  accept(contents: Contents): void {
    this.#accepted = new Map(contents);
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
      this.#refusals.set(plugin, { content, message });
      found.push(plugin);
      const accepted = this.#accepted.get(plugin);
      const isStillGood =
        accepted && accepted !== content && (await refusalOf(plugin, accepted)) === undefined;
      if (!isStillGood) this.#accepted.delete(plugin);
    }
    return found;
  }
}
