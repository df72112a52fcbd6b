import type { ClusterNode } from "../../node.ts";

/** One restart of the kubelet for several cases: it happens when each of them has come to it. */
export class SharedRestart {
  readonly #node: ClusterNode;
  readonly #whileDown: Array<() => unknown> = [];
  readonly #restarted = Promise.withResolvers<void>();
  #awaited: number;

  constructor(node: ClusterNode, cases: number) {
    this.#node = node;
    this.#awaited = cases;
    // Cases that are not at their restart yet do not wait for it.
    this.done.catch(() => {});
  }

  /** Resolves when the kubelet is ready again. */
  get done(): Promise<void> {
    return this.#restarted.promise;
  }

  /** Waits for the restart; `whileDown` runs between the kubelet's end and its start. */
  async join(whileDown: () => unknown = () => {}): Promise<void> {
    let failure: { error: unknown } | undefined;
    this.#whileDown.push(async () => {
      try {
        await whileDown();
      } catch (error) {
        failure = { error };
      }
    });
    this.leave();
    await this.done;
    if (failure) throw failure.error;
  }

  /** Does not wait any longer for a case that failed before its restart. */
  leave(): void {
    this.#awaited--;
    if (this.#awaited === 0) this.#restart().then(this.#restarted.resolve, this.#restarted.reject);
  }

  async #restart(): Promise<void> {
    await this.#node.kubelet.kill();
    await Promise.all(this.#whileDown.map((each) => each()));
    this.#node.kubelet.start();
    await this.#node.ready();
  }
}
