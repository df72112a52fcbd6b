import { GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import type { LastGoodPart } from "../state/index.ts";
import { type Contents, encodeContent, type PluginContent, parseContent } from "./content.ts";
import type { PublisherOptions } from "./publish-options.ts";

/**
 * The last known good contents of quarantined plugins in the state database. Without them, a restarted agent would withdraw
 * the published fields of a quarantined plugin.
 */
export class LastGoodRecord {
  readonly #object: string;
  readonly #part: LastGoodPart;
  readonly #options: PublisherOptions;
  #recorded: Contents = new Map();
  #isFailing = false;

  /**
   * @param object `kindKey`
   * @param part the quarantine that replaces contents by these
   */
  constructor(object: string, part: LastGoodPart, options: PublisherOptions) {
    this.#object = object;
    this.#part = part;
    this.#options = options;
  }

  /** Decodes what is stored: messages by plugin. A message that cannot be decoded is logged and omitted. */
  restore(messages: ReadonlyMap<string, Uint8Array>): Contents {
    const contents = new Map<string, PluginContent>();
    const { policies, log } = this.#options;
    for (const [plugin, message] of messages) {
      try {
        contents.set(plugin, parseContent(GetReportContentResponse.decode(message), policies));
      } catch (error) {
        log.warn(
          { errorId: "NK1103", err: error, plugin, object: this.#object },
          "failed to restore a plugin's last known good content from the state database",
        );
      }
    }
    this.#recorded = contents;
    return contents;
  }

  /** Replaces what is stored, if it differs. A failure is logged once; the next call tries again. */
  save(contents: Contents): void {
    const isSame = [...contents].every(([plugin, content]) => this.#recorded.get(plugin) === content);
    if (isSame && contents.size === this.#recorded.size) return;
    const messages = new Map<string, Uint8Array>();
    for (const [plugin, { fields }] of contents) {
      const ofObject = fields.filter(({ object }) => object === this.#object);
      messages.set(plugin, encodeContent({ fields: ofObject, problems: [] }));
    }
    const { store, log } = this.#options;
    try {
      store.saveLastGood(this.#object, this.#part, messages);
      this.#recorded = contents;
      this.#isFailing = false;
    } catch (error) {
      if (this.#isFailing) return;
      this.#isFailing = true;
      // A full disk is reported by the health check of the reporter checkpoint.
      log.warn(
        { errorId: "NK1105", err: error, object: this.#object },
        "failed to store the last known good contents of quarantined plugins",
      );
    }
  }
}
