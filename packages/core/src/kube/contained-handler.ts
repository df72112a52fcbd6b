import type { Logger } from "../lib/index.ts";
import type { KubeMetrics } from "./metrics.ts";
import type { ApiResource, KubeObject, WatchHandler } from "./types.ts";

/** A watch handler whose errors are logged and counted and do not propagate. */
export class ContainedHandler {
  readonly #handler: WatchHandler;
  readonly #log: Logger;
  readonly #metrics: KubeMetrics;
  readonly #resource: string;

  constructor(options: { handler: WatchHandler; log: Logger; metrics: KubeMetrics; resource: ApiResource }) {
    this.#handler = options.handler;
    this.#log = options.log;
    this.#metrics = options.metrics;
    this.#resource = options.resource.plural;
  }

  replace(objects: KubeObject[], resourceVersion: string): void {
    this.#contain("REPLACE", undefined, () => this.#handler.onReplace(objects, resourceVersion));
  }

  upsert(type: string, object: KubeObject): void {
    this.#contain(type, object, () => this.#handler.onUpsert(object));
  }

  delete(object: KubeObject): void {
    this.#contain("DELETED", object, () => this.#handler.onDelete(object));
  }

  /** Not counted, because it is not an event of the server. */
  open(): void {
    this.#guard("OPEN", undefined, () => this.#handler.onOpen?.());
  }

  /** Returns undefined if the handler throws. */
  knownVersion(head: string): string | undefined {
    let version: string | undefined;
    this.#guard("KNOWN", undefined, () => {
      version = this.#handler.knownVersion?.(head);
    });
    return version;
  }

  bookmark(): void {
    this.#contain("BOOKMARK", undefined, () => this.#handler.onBookmark?.());
  }

  #contain(type: string, object: KubeObject | undefined, call: () => unknown): void {
    this.#metrics.watchEvents.inc({ resource: this.#resource, type });
    this.#guard(type, object, call);
  }

  #guard(type: string, object: KubeObject | undefined, call: () => unknown): void {
    try {
      const result = call();
      // The type also permits async functions, whose unhandled rejection would crash the process.
      if (result instanceof Promise) result.catch((error) => this.#complain(type, object, error));
    } catch (error) {
      this.#complain(type, object, error);
    }
  }

  #complain(type: string, object: KubeObject | undefined, error: unknown): void {
    this.#metrics.watchHandlerErrors.inc({ resource: this.#resource });
    const { name, namespace } = object?.metadata ?? {};
    const about = object ? { object: { namespace, name } } : {};
    this.#log.error({ err: error, resource: this.#resource, type, ...about }, "watch handler failed");
  }
}
