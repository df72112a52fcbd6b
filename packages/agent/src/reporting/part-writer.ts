import { GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import { codeOf } from "@nodekeeper/core/lib";
import { type ApplyPart, type Desired, desiredOf } from "./bodies.ts";
import { encodeContent, type PluginContent, parseContent } from "./content.ts";
import { type MergedObject, mergeObject } from "./merge.ts";
import { ownedFields } from "./owned-values.ts";
import type { PublisherOptions } from "./publish-options.ts";
import { Quarantine } from "./quarantine.ts";
import type { RemoteObject } from "./remote-object.ts";
import { ownsTaintList, taintsOf } from "./taints.ts";

/** What plugins report, by plugin. */
export type Contents = ReadonlyMap<string, PluginContent>;

/** What plugins want of one part. */
export interface Wish {
  contents: Contents;
  merged: MergedObject | undefined;
  desired: Desired;
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
  /** The text of `Desired` of the last good write; undefined: not known to be there. */
  applied: string | undefined;
  // Monotonic.
  #appliedAt = Number.NEGATIVE_INFINITY;
  // As the server last answered: what no plugin reports any more is to be removed.
  #owns = false;
  #ownsTaints = false;
  // The contents as they are recorded that stand in for refused ones.
  #recorded: Contents = new Map();

  constructor(part: ApplyPart, object: string, options: PublisherOptions, listener: WriteListener) {
    this.part = part;
    this.#object = object;
    this.#options = options;
    this.#listener = listener;
    this.quarantine = new Quarantine(options.clock);
  }

  /** Whether the server holds fields of this part that the agent, or one before it, has applied. */
  get owns(): boolean {
    return this.#owns;
  }

  /** Takes note of what the server says is the agent's; undefined: there is no object. */
  saw(live: KubeObject | undefined): void {
    const { fieldManager } = this.#options;
    this.#owns = live !== undefined && ownedFields(live, fieldManager, this.part) !== "";
    this.#ownsTaints = this.part === "main" && live !== undefined && ownsTaintList(live, fieldManager);
  }

  /** Takes over what a predecessor published instead of contents that the server refused. */
  restoreStandIns(messages: ReadonlyMap<string, Uint8Array>): void {
    const contents = new Map<string, PluginContent>();
    const { policies, log } = this.#options;
    for (const [plugin, message] of messages) {
      try {
        contents.set(plugin, parseContent(GetReportContentResponse.decode(message), policies));
      } catch (error) {
        log.warn(
          { err: error, plugin, object: this.#object },
          "a plugin's last good content can't be read back from the state",
        );
      }
    }
    this.#recorded = contents;
    this.quarantine.accept(contents);
  }

  /** What was applied longer ago is not known to be there any more, milliseconds. Gives whether that is so just now. */
  expire(afterMs: number): boolean {
    if (this.applied === undefined || this.#options.clock.monotonic() - this.#appliedAt < afterMs)
      return false;
    this.applied = undefined;
    return true;
  }

  wish(all: Contents): Wish {
    const contents = this.quarantine.filter(all);
    const merged = mergeObject(this.#object, contents);
    return { contents, merged, desired: desiredOf(merged, this.part) };
  }

  /** Writes the wish. Where the server refuses it for some plugins' contents, those are left out. */
  async write(remote: RemoteObject, first: Wish, all: Contents, signal: AbortSignal): Promise<void> {
    let wish = first;
    try {
      await this.#apply(remote, wish.desired, signal);
    } catch (error) {
      if (codeOf(error) !== "invalid" || !wish.merged) throw error;
      if (!(await this.#isolate(remote, all, wish.merged.plugins, signal))) throw error;
      this.#recordStandIns();
      wish = this.wish(all);
      await this.#apply(remote, wish.desired, signal);
    }
    this.quarantine.accept(wish.contents);
    this.#recordStandIns();
  }

  /** The object is not there, and nothing is to be published of it. */
  forget(): void {
    this.saw(undefined);
    this.#took("");
  }

  async #apply(remote: RemoteObject, { fields, text }: Desired, signal: AbortSignal): Promise<void> {
    this.#listener.onTry();
    const ownsTaints = this.#ownsTaints;
    // An answer that is lost on its way says nothing about what the server has taken.
    this.#ownsTaints ||= this.part === "main" && taintsOf(fields).length > 0;
    const answer = await remote.apply({ part: this.part, fields, ownsTaints }, signal);
    this.saw(answer);
    this.#listener.onWritten(this.part, answer);
    this.#took(text);
  }

  #took(text: string): void {
    this.applied = text;
    this.#appliedAt = this.#options.clock.monotonic();
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
      const { fields } = desiredOf(mergeObject(object, contents), this.part);
      await remote.tryOut({ part: this.part, fields, ownsTaints: this.#ownsTaints }, signal);
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
    const { store, log } = this.#options;
    try {
      store.saveStandIns(this.#object, this.part, messages);
    } catch (error) {
      // The reporter checkpoint's health check reports a disk that is full.
      log.warn(
        { err: error, object: this.#object },
        "last good contents of refused plugins can't be recorded",
      );
    }
  }
}
