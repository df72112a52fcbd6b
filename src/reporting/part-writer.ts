import { GetReportContentResponse } from "../gen/reporterplugin/v1alpha1/api.ts";
import type { KubeObject } from "../kube/index.ts";
import { codeOf } from "../lib/index.ts";
import { type ApplyPart, desiredText } from "./bodies.ts";
import { encodeContent, type PluginContent, parseContent } from "./content.ts";
import { type MergedObject, mergeObject } from "./merge.ts";
import type { PublisherOptions } from "./publish-options.ts";
import { Quarantine } from "./quarantine.ts";
import type { RemoteObject } from "./remote-object.ts";

type Contents = ReadonlyMap<string, PluginContent>;

/** What plugins want of one part. */
export interface Wish {
  contents: Contents;
  merged: MergedObject | undefined;
  text: string;
}

/** What is told of writes. */
export interface WriteListener {
  /** The server is about to be asked. */
  onTry(): void;
  onWritten(part: ApplyPart, answer: KubeObject): void;
}

/** Writes one part of one object, and remembers what it wrote. */
export class PartWriter {
  readonly part: ApplyPart;
  readonly quarantine: Quarantine;
  readonly #object: string;
  readonly #options: PublisherOptions;
  readonly #listener: WriteListener;
  /** `desiredText` of the last good write; undefined: not known to be there. */
  applied: string | undefined;
  // Monotonic.
  #appliedAt = Number.NEGATIVE_INFINITY;
  // What the last write of this agent or its predecessor carried; what no plugin says any more is ours to remove.
  #published = "";
  // The contents as they are recorded that stand in for refused ones.
  #recorded: Contents = new Map();

  constructor(part: ApplyPart, object: string, options: PublisherOptions, listener: WriteListener) {
    this.part = part;
    this.#object = object;
    this.#options = options;
    this.#listener = listener;
    this.quarantine = new Quarantine(options.clock);
  }

  /** What was last published, by this agent or its predecessor; empty where nothing was. */
  get published(): string {
    return this.#published;
  }

  /** Takes over what a predecessor published. */
  restore(body: string): void {
    this.#published = body;
  }

  /** Takes over what a predecessor published instead of contents that the server refused. */
  restoreStandIns(messages: ReadonlyMap<string, Uint8Array>): void {
    const contents = new Map<string, PluginContent>();
    for (const [plugin, message] of messages) {
      contents.set(plugin, parseContent(GetReportContentResponse.decode(message), this.#options.policies));
    }
    this.#recorded = contents;
    this.quarantine.accept(contents);
  }

  /** What was applied longer ago is not known to be there any more, milliseconds. */
  expire(afterMs: number): void {
    if (this.#options.clock.monotonic() - this.#appliedAt >= afterMs) this.applied = undefined;
  }

  wish(all: Contents): Wish {
    const contents = this.quarantine.filter(all);
    const merged = mergeObject(this.#object, contents);
    return { contents, merged, text: desiredText(merged, this.part) };
  }

  /** Writes the wish. Where the server refuses it for some plugins' contents, those are left out. */
  async write(remote: RemoteObject, first: Wish, all: Contents, signal: AbortSignal): Promise<void> {
    let wish = first;
    try {
      await this.#apply(remote, wish.text, signal);
    } catch (error) {
      if (codeOf(error) !== "invalid" || !wish.merged) throw error;
      if (!(await this.#isolate(remote, all, wish.merged.plugins, signal))) throw error;
      this.#recordStandIns();
      wish = this.wish(all);
      await this.#apply(remote, wish.text, signal);
    }
    this.quarantine.accept(wish.contents);
    this.#recordStandIns();
  }

  /** The object is not there, and nothing is wished of it. */
  forget(): void {
    this.#took("");
  }

  async #apply(remote: RemoteObject, text: string, signal: AbortSignal): Promise<void> {
    const before = this.#published;
    this.#listener.onTry();
    // Recorded ahead: whoever dies between the write and its record leaves nothing behind that nobody removes.
    if (before === "") this.#record(text);
    const answer = await remote.apply({ part: this.part, text, before }, signal);
    this.#listener.onWritten(this.part, answer);
    this.#took(text);
  }

  #took(text: string): void {
    this.applied = text;
    this.#appliedAt = this.#options.clock.monotonic();
    this.#record(text);
  }

  async #isolate(
    remote: RemoteObject,
    all: Contents,
    contributors: readonly string[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { log, notify } = this.#options;
    const object = this.#object;
    const found = await this.quarantine.isolate(all, contributors, async (contents) => {
      const text = desiredText(mergeObject(object, contents), this.part);
      await remote.tryOut({ part: this.part, text, before: this.#published }, signal);
    });
    for (const plugin of found) {
      const reason = this.quarantine.refusals.get(plugin)?.message ?? "";
      log.error(
        { plugin, object, reason },
        "API server refuses a plugin's content: its last good content stays, the other plugins are published",
      );
      notify("ReportRefused", `The API server refuses what plugin ${plugin} reports on ${object}: ${reason}`);
    }
    return found.length > 0;
  }

  #record(text: string): void {
    if (this.#published === text) return;
    const { clock, store } = this.#options;
    const place = { object: this.#object, part: this.part };
    this.#published = text;
    this.#save("what was published can't be recorded", () => {
      if (text === "") store.dropPublished(place.object, place.part);
      else store.savePublished({ ...place, body: text, at: clock.now() });
    });
  }

  // Without them an agent that starts anew would withdraw the fields of a plugin whose newer content is refused.
  #recordStandIns(): void {
    const standIns = this.quarantine.standIns;
    const isSame = [...standIns].every(([plugin, content]) => this.#recorded.get(plugin) === content);
    if (isSame && standIns.size === this.#recorded.size) return;
    const messages = new Map<string, Uint8Array>();
    for (const [plugin, { fields }] of standIns) {
      const ofObject = fields.filter(({ object }) => object === this.#object);
      messages.set(plugin, encodeContent({ fields: ofObject, problems: [] }));
    }
    this.#recorded = standIns;
    this.#save("last good contents of refused plugins can't be recorded", () =>
      this.#options.store.saveStandIns(this.#object, this.part, messages),
    );
  }

  // The reporter checkpoint's health check tells of a disk that is full.
  #save(problem: string, save: () => void): void {
    try {
      save();
    } catch (error) {
      this.#options.log.warn({ err: error, object: this.#object }, problem);
    }
  }
}
