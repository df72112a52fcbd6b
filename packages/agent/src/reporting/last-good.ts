import { StateDamaged } from "@nodekeeper/api/errors";
import { GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { type LastGoodPart, WriteBehind } from "../state/index.ts";
import { type Contents, encodeContent, type PluginContent, parseContent } from "./content.ts";
import type { PublishContext } from "./context.ts";

/**
 * Last known good contents of quarantined plugins in the state database. Without them, a restarted agent would withdraw
 * the published fields of quarantined plugins.
 */
export class LastGoodRecord {
  readonly #object: string;
  readonly #part: LastGoodPart;
  readonly #options: PublishContext;
  readonly #writes: WriteBehind;
  /** Contents to store. */
  #contents: Contents = new Map();
  #recorded: Contents = new Map();

  /**
   * @param object the object's `kindKey`
   * @param part the quarantine that publishes these contents
   */
  constructor(object: string, part: LastGoodPart, options: PublishContext) {
    this.#object = object;
    this.#part = part;
    this.#options = options;
    const what = `the last known good contents of quarantined plugins for ${object}`;
    this.#writes = new WriteBehind({ what, write: () => this.#write(), log: options.log });
  }

  /** Decodes the stored messages. A message that cannot be decoded is logged and omitted. */
  restore(messages: ReadonlyMap<string, Uint8Array>): Contents {
    const contents = new Map<string, PluginContent>();
    const { policies, log } = this.#options;
    for (const [plugin, message] of messages) {
      try {
        contents.set(plugin, parseContent(GetReportContentResponse.decode(message), policies));
      } catch (error) {
        log.warn(
          { errorId: StateDamaged.id, err: error, plugin, object: this.#object },
          "failed to restore a plugin's last known good content from the state database",
        );
      }
    }
    this.#recorded = contents;
    return contents;
  }

  /** Stores the contents if they changed. A failure is logged once. The next call retries. */
  save(contents: Contents): void {
    const isSame = [...contents].every(([plugin, content]) => this.#recorded.get(plugin) === content);
    if (isSame && contents.size === this.#recorded.size) return;
    this.#contents = contents;
    // The health check of the reporter checkpoint reports a full disk.
    this.#writes.flush();
  }

  #write(): void {
    const messages = new Map<string, Uint8Array>();
    for (const [plugin, { fields }] of this.#contents) {
      const ofObject = fields.filter(({ object }) => object === this.#object);
      messages.set(plugin, encodeContent({ fields: ofObject, problems: [] }));
    }
    this.#options.store.saveLastGood(this.#object, this.#part, messages);
    this.#recorded = this.#contents;
  }
}
