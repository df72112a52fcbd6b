import { type KubeApiClient, podResource, recordOf, textOf } from "@nodekeeper/core/kube";
import { type Clock, type Logger, Semaphore, withDeadline } from "@nodekeeper/core/lib";
import type { ClaimPod } from "./allocation.ts";

interface Context {
  client: Pick<KubeApiClient, "get">;
  /** The service account of a pod by UID, from a watch; undefined if it is not known. */
  known?: ((uid: string) => string | undefined) | undefined;
  clock: Clock;
  log: Logger;
}

// A claim may be reserved for 256 pods. Most are for one.
const MOST_AT_ONCE = 4;
const LONGEST_MS = 2_000;

/** Looks up the service accounts of pods. Reads a pod from the API server only if a watch has not reported it. */
export class PodAccounts {
  readonly #context: Context;
  readonly #semaphore = new Semaphore({ permits: MOST_AT_ONCE });

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Returns the pods with their service accounts. Omits the account of a pod that can't be read within 2 s, or that was
   * replaced by another pod with the same name. Rejects only with the signal's reason.
   */
  async of(namespace: string, pods: readonly ClaimPod[], parent: AbortSignal): Promise<ClaimPod[]> {
    const { clock, log, known = () => undefined } = this.#context;
    let failure: unknown;
    const accounts = new Map<string, string>();
    const unknown = pods.filter(({ uid }) => {
      const account = known(uid);
      accounts.set(uid, account ?? "");
      return account === undefined;
    });
    const readAll = (signal: AbortSignal) =>
      Promise.all(
        unknown.map(async ({ name, uid }) => {
          try {
            const account = await this.#semaphore.run(signal, () => this.#read(namespace, name, uid, signal));
            accounts.set(uid, account);
          } catch (error) {
            failure = error;
          }
        }),
      );
    if (unknown.length > 0)
      await withDeadline(clock, { ms: LONGEST_MS, name: "reading the claim's pods" }, parent, readAll).catch(
        (error: unknown) => {
          failure = error;
        },
      );
    parent.throwIfAborted();
    if (failure)
      log.info(
        { err: failure, namespace },
        "pods of a claim can't be read: their service accounts are unknown",
      );
    return pods.map((pod) => {
      const serviceAccount = accounts.get(pod.uid);
      return serviceAccount ? { ...pod, serviceAccount } : pod;
    });
  }

  async #read(namespace: string, name: string, uid: string, signal: AbortSignal): Promise<string> {
    const { metadata, spec } = await this.#context.client.get(podResource, name, { namespace, signal });
    return metadata.uid === uid ? textOf(recordOf(spec).serviceAccountName) : "";
  }
}
