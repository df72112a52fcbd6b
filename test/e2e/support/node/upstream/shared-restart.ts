import type { ClusterNode } from "../../node.ts";

/** One restart of the kubelet for several cases: it happens when each of them has come to it. */
export class SharedRestart {
  readonly #node: ClusterNode;
  readonly #whileDown: Array<() => unknown> = [];
  readonly #done = Promise.withResolvers<void>();
  #awaited: number;

  constructor(node: ClusterNode, cases: number) {
    this.#node = node;
    this.#awaited = cases;
    // Cases that are not at their restart yet do not wait for it.
    this.#done.promise.catch(() => {});
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
    await this.#done.promise;
    if (failure) throw failure.error;
  }

  /** Does not wait any longer for a case that failed before its restart. */
  leave(): void {
    this.#awaited--;
    if (this.#awaited === 0) this.#restart().then(this.#done.resolve, this.#done.reject);
  }

  async #restart(): Promise<void> {
    await this.#node.kubelet.kill();
    await Promise.all(this.#whileDown.map((each) => each()));
    this.#node.kubelet.start();
    await this.#node.ready();
  }
}
