import type { KubeObject } from "@nodekeeper/core/kube";
import type { Timer } from "@nodekeeper/core/lib";
import type { Target } from "./catalogue/definition.ts";
import { keyOf } from "./json.ts";
import type { WriteContext } from "./writes/context.ts";
import { deleteObject } from "./writes/delete.ts";

/** Removes terminating pods at the end of their grace period, as the kubelet would after stopping them. */
export class PodRemoval {
  readonly #context: WriteContext;
  readonly #timers = new Map<string, Timer>();
  #unsubscribe: (() => void) | undefined;

  constructor(context: WriteContext) {
    this.#context = context;
  }

  start(): void {
    const { store } = this.#context;
    for (const pod of store.list("pods")) this.#consider(pod);
    this.#unsubscribe = store.hub.subscribe("pods", ({ type, object }) => {
      if (type === "DELETED") this.#cancel(keyOf(object));
      else this.#consider(object);
    });
  }

  stop(): void {
    this.#unsubscribe?.();
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  #consider(pod: KubeObject): void {
    const { deletionTimestamp } = pod.metadata;
    const key = keyOf(pod);
    this.#cancel(key);
    if (!deletionTimestamp || pod.metadata.finalizers?.length) return;
    const { clock } = this.#context;
    const timer = clock.after(Math.max(Date.parse(deletionTimestamp) - clock.now(), 0), () =>
      this.#remove(key),
    );
    this.#timers.set(key, timer);
  }

  #cancel(key: string): void {
    this.#timers.get(key)?.cancel();
    this.#timers.delete(key);
  }

  #remove(key: string): void {
    this.#timers.delete(key);
    const { store, catalogue } = this.#context;
    const pod = store.get("pods", key);
    const definition = catalogue.byName("pods");
    if (!pod || !definition) return;
    const { namespace, name } = pod.metadata;
    const target: Target = { definition, version: definition.versions[0]!, namespace, name };
    deleteObject(this.#context, target, { gracePeriodSeconds: 0 });
  }
}
