import { FieldsWithoutReporter } from "@nodekeeper/api/errors";
import type { KubeObject } from "@nodekeeper/core/kube";
import { type Contents, noContent, type PluginContent } from "./content.ts";
import type { PublishContext } from "./context.ts";
import { type KindPolicy, kindKey } from "./kinds.ts";
import { mergeObject } from "./merge.ts";
import { PREDECESSOR } from "./rank.ts";
import { pathsOf, publishedBefore, publishedOf, unclaimed } from "./unclaimed.ts";

/**
 * Fields of one object that earlier agent processes published, as recorded in its managedFields.
 *
 * 1. A field that no plugin reports is kept for the plugin grace period, counted from this agent's start. Its plugin
 *    may register again, and the state database may have been lost or restored from a backup.
 * 2. Once a plugin reports the field, only that plugin determines it.
 * 3. At the end of the grace period, the remaining fields are removed.
 * 4. Until then, they serve as last known good content of plugins that have no other and whose reports are quarantined.
 */
export class Predecessor {
  readonly #policy: KindPolicy;
  readonly #options: PublishContext;
  #content: PluginContent = noContent;
  #published: PluginContent = noContent;
  // Plugins that were passed to `publishedOf`.
  readonly #known = new Set<string>();
  #restored: Contents = new Map();
  // Monotonic milliseconds.
  #startedAt = 0;
  #isKnown = false;

  constructor(policy: KindPolicy, options: PublishContext) {
    this.#policy = policy;
    this.#options = options;
  }

  /** Whether the object was read since startup. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Time at which remaining fields are removed, in monotonic milliseconds. Infinity if there are none. */
  get until(): number {
    if (this.#content.fields.length === 0) return Number.POSITIVE_INFINITY;
    return this.#graceEnd;
  }

  get #graceEnd(): number {
    const { settings, returnMs } = this.#options;
    return this.#startedAt + Math.max(settings().pluginGracePeriod, returnMs);
  }

  /** Paths of the remaining fields. */
  get unclaimed(): readonly string[] {
    return pathsOf(this.#content);
  }

  /** @param restored contents from the checkpoint, which claim the fields that they contain */
  start(restored: Contents): void {
    this.#startedAt = this.#options.clock.monotonic();
    this.#restored = restored;
  }

  /**
   * Records the object before this agent's first write. `live` is undefined if it does not exist.
   * @param publishable returns the published part of contents; quarantined content claims no fields
   */
  read(live: KubeObject | undefined, publishable: (contents: Contents) => Contents): void {
    this.#isKnown = true;
    if (!live) return;
    const { fieldManager: manager, isFrozenTaint: isFrozen } = this.#options;
    this.#published = publishedBefore(live, this.#policy, { manager, isFrozen });
    this.#content = this.#published;
    this.#claim(publishable(this.#restored));
    this.#restored = new Map();
    this.#claim(publishable(this.#options.reports.contents()));
    if (this.#content.fields.length === 0) return;
    this.#report(
      "an earlier agent process published fields that no plugin reports; they are kept for the grace period",
    );
  }

  /**
   * Returns the fields of each plugin that earlier agent processes published. Each plugin is included only once:
   * afterwards, its last known good content is what this agent published.
   */
  publishedOf(contents: Contents): Contents {
    const found = new Map<string, PluginContent>();
    if (this.#published.fields.length === 0) return found;
    for (const [plugin, content] of contents) {
      if (this.#known.has(plugin)) continue;
      this.#known.add(plugin);
      const published = publishedOf(this.#published, content);
      if (published.fields.length > 0) found.set(plugin, published);
    }
    return found;
  }

  /** Adds the remaining fields of earlier agent processes to contents. */
  addTo(contents: Contents): Contents {
    this.#claim(contents);
    if (this.#graceEnd <= this.#options.clock.monotonic()) this.#published = noContent;
    if (this.until <= this.#options.clock.monotonic()) {
      this.#report("no plugin reported the fields published by an earlier agent process; they are removed");
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
      {
        errorId: FieldsWithoutReporter.id,
        object: kindKey(this.#policy.kind),
        fields: paths.slice(0, 20),
        count: paths.length,
      },
      message,
    );
  }
}
