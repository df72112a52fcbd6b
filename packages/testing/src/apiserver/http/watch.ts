import type { KubeObject } from "@nodekeeper/core/kube";
import type { Clock, Timer } from "@nodekeeper/core/lib";
import { apiVersionOf } from "../catalogue/definition.ts";
import type { Predicate } from "../selectors.ts";
import { expired } from "../status.ts";
import type { Change } from "../store/change.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { Call } from "./call.ts";
import { representObject, type View } from "./representation.ts";

/** Parameters of a watch request. */
export interface WatchRequest {
  view: View;
  matches: Predicate | undefined;
  /** Revision after which changes are sent. Undefined or 0: starts with the current objects. */
  since: number | undefined;
  /** Starts with all objects, followed by a bookmark that marks their end (watch-list protocol). */
  sendInitialEvents: boolean;
  bookmarks: boolean;
  timeoutMs: number;
}

export interface WatchLimits {
  /** A watch with more buffered bytes is closed. */
  maxBufferedBytes: number;
  bookmarkIntervalMs: number;
}

type EventType = "ADDED" | "MODIFIED" | "DELETED";

/** An open watch. Ends by its timeout, by the client, or by `cut`. */
export class WatchStream {
  readonly #call: Call;
  readonly #store: ObjectStore;
  readonly #request: WatchRequest;
  readonly #clock: Clock;
  readonly #limits: WatchLimits;
  readonly #timers: Timer[] = [];
  readonly #onEnd: (stream: WatchStream) => void;
  #unsubscribe: (() => void) | undefined;
  #ended = false;

  constructor(
    call: Call,
    store: ObjectStore,
    request: WatchRequest,
    clock: Clock,
    limits: WatchLimits,
    onEnd: (stream: WatchStream) => void,
  ) {
    this.#call = call;
    this.#store = store;
    this.#request = request;
    this.#clock = clock;
    this.#limits = limits;
    this.#onEnd = onEnd;
  }

  /** Sends the initial events, then all further changes. */
  start(): void {
    const { response } = this.#call;
    response.writeHead(200, { "content-type": "application/json", "cache-control": "no-cache, private" });
    response.flushHeaders();
    response.once("close", () => this.end());
    const { storage } = this.#request.view.definition;
    if (!this.#sendBacklog(storage)) return;
    this.#unsubscribe = this.#store.hub.subscribe(storage, (change) => this.#send(change));
    this.#timers.push(this.#clock.after(this.#request.timeoutMs, () => this.end()));
    if (this.#request.bookmarks) this.#scheduleBookmark();
  }

  /** Ends the stream normally, like the server at the timeout. */
  end(): void {
    if (!this.#close()) return;
    this.#call.response.end();
  }

  /** Breaks the connection, like a crash or a network failure. */
  cut(): void {
    this.#close();
    this.#call.response.destroy();
  }

  #close(): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    this.#unsubscribe?.();
    for (const timer of this.#timers) timer.cancel();
    this.#onEnd(this);
    return true;
  }

  #sendBacklog(storage: string): boolean {
    const { since, matches, sendInitialEvents } = this.#request;
    if (!since || sendInitialEvents) {
      for (const object of this.#store.list(storage))
        if (!matches || matches(object)) this.#write("ADDED", object);
      if (sendInitialEvents) this.#sendBookmark({ "k8s.io/initial-events-end": "true" });
      return true;
    }
    const changes = this.#store.hub.since(storage, since);
    if (changes) {
      for (const change of changes) this.#send(change);
      return true;
    }
    const { status } = expired(`too old resource version: ${since} (${this.#store.revision})`);
    this.#writeBytes(Buffer.from(`${JSON.stringify({ type: "ERROR", object: status })}\n`));
    this.end();
    return false;
  }

  #send(change: Change): void {
    const type = this.#typeFor(change);
    if (!type) return;
    const { form, definition, version } = this.#request.view;
    // Table rows contain ages and are therefore encoded for each watch.
    if (form.as === "table") {
      this.#write(type, change.object);
      return;
    }
    const key = `${type} ${form.as} ${apiVersionOf(definition, version)}`;
    const bytes = change.encoded.get(key) ?? this.#encode(type, change.object);
    change.encoded.set(key, bytes);
    this.#writeBytes(bytes);
  }

  // For a watch with a selector, an object is added when it starts to match and deleted when it no longer matches.
  #typeFor({ type, object, previous }: Change): EventType | undefined {
    const { matches } = this.#request;
    if (!matches) return type;
    const before = previous !== undefined && matches(previous);
    const after = type !== "DELETED" && matches(object);
    if (before && after) return "MODIFIED";
    if (after) return "ADDED";
    return before ? "DELETED" : undefined;
  }

  #write(type: EventType, object: KubeObject): void {
    this.#writeBytes(this.#encode(type, object));
  }

  #encode(type: EventType, object: KubeObject): Buffer {
    const view = { ...this.#request.view, now: this.#clock.now() };
    return Buffer.from(`{"type":"${type}","object":${JSON.stringify(representObject(object, view))}}\n`);
  }

  #scheduleBookmark(): void {
    const timer = this.#clock.after(this.#limits.bookmarkIntervalMs, () => {
      this.#timers.splice(this.#timers.indexOf(timer), 1);
      this.#sendBookmark();
      if (!this.#ended) this.#scheduleBookmark();
    });
    this.#timers.push(timer);
  }

  #sendBookmark(annotations?: Record<string, string>): void {
    const { definition, version } = this.#request.view;
    const metadata = {
      resourceVersion: String(this.#store.revision),
      creationTimestamp: null,
      ...(annotations ? { annotations } : {}),
    };
    const object = { kind: definition.kind, apiVersion: apiVersionOf(definition, version), metadata };
    this.#writeBytes(Buffer.from(`${JSON.stringify({ type: "BOOKMARK", object })}\n`));
  }

  #writeBytes(bytes: Buffer): void {
    const { response } = this.#call;
    if (this.#ended || response.destroyed) return;
    response.write(bytes);
    if (response.writableLength > this.#limits.maxBufferedBytes) this.cut();
  }
}
