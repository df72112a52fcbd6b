import type { KubeObject } from "@nodekeeper/core/kube";
import { noContent, type PluginContent } from "./content.ts";
import { type KindPolicy, kindKey } from "./kinds.ts";
import { mergeObject } from "./merge.ts";
import type { Contents } from "./part-writer.ts";
import type { PublisherOptions } from "./publish-options.ts";
import { pathsOf, publishedBefore, unclaimed } from "./unclaimed.ts";

/** Stands for the earlier agent among plugins: none can have this name, and it sorts before all. */
const PREDECESSOR = "(earlier agent)";

/**
 * What agents before this one published of one object, by the word of the API server.
 *
 * 1. A field that they applied and no known plugin reports is kept for the grace period of a lost plugin, counted from
 *    this agent's start: its plugin may come back, and state that is lost or old says nothing about it.
 * 2. As soon as a plugin reports the field, it is the plugin's alone.
 * 3. At the end of the grace period what is left is released.
 */
export class Predecessor {
  readonly #policy: KindPolicy;
  readonly #options: PublisherOptions;
  #content: PluginContent = noContent;
  #restored: Contents = new Map();
  // Monotonic.
  #startedAt = 0;
  #isKnown = false;

  constructor(policy: KindPolicy, options: PublisherOptions) {
    this.#policy = policy;
    this.#options = options;
  }

  /** Whether the object was read since the start. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Monotonic milliseconds: when what is left is released; infinite where nothing is left. */
  get until(): number {
    if (this.#content.fields.length === 0) return Number.POSITIVE_INFINITY;
    const { settings, returnMs } = this.#options;
    return this.#startedAt + Math.max(settings().pluginGracePeriod, returnMs);
  }

  /** Where fields are kept of which no known plugin is the source. */
  get unclaimed(): readonly string[] {
    return pathsOf(this.#content);
  }

  /** @param restored contents of plugins as the state has them; what they cover has a known source */
  start(restored: Contents): void {
    this.#startedAt = this.#options.clock.monotonic();
    this.#restored = restored;
  }

  /**
   * Takes the object as it was before this agent's first write; undefined: there is none.
   * @param publishable gives of contents what is published: what is held back covers nothing
   */
  meet(live: KubeObject | undefined, publishable: (contents: Contents) => Contents): void {
    this.#isKnown = true;
    if (!live) return;
    const { fieldManager: manager, managedTaintPrefixes: managedPrefixes } = this.#options;
    this.#content = publishedBefore(live, this.#policy, { manager, managedPrefixes });
    this.#claim(publishable(this.#restored));
    this.#restored = new Map();
    this.#claim(publishable(this.#options.contents()));
    if (this.#content.fields.length === 0) return;
    this.#report("an earlier agent published fields that no known plugin reports: kept for the grace period");
  }

  /** The contents with what is left of the earlier agent's. */
  addTo(contents: Contents): Contents {
    this.#claim(contents);
    if (this.until <= this.#options.clock.monotonic()) {
      this.#report("no plugin reported what an earlier agent had published: it is released");
      this.#keep(noContent);
    }
    if (this.#content.fields.length === 0) return contents;
    return new Map(contents).set(PREDECESSOR, this.#content);
  }

  #claim(contents: Contents): void {
    if (this.#content.fields.length === 0) return;
    this.#keep(unclaimed(this.#content, mergeObject(kindKey(this.#policy.kind), contents)));
  }

  #keep(content: PluginContent): void {
    this.#content = content;
    const object = kindKey(this.#policy.kind);
    this.#options.metrics.unclaimed.set({ object }, pathsOf(content).length);
  }

  #report(message: string): void {
    const paths = pathsOf(this.#content);
    this.#options.log.warn(
      { object: kindKey(this.#policy.kind), fields: paths.slice(0, 20), count: paths.length },
      message,
    );
  }
}
