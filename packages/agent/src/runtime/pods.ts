import type { PodIdentity } from "@nodekeeper/api/lifecycle";
import type { Container, PodSandbox } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { codeOf, type Logger } from "@nodekeeper/core/lib";
import type { Anomalies } from "./anomalies.ts";
import type { Listed, RuntimeLists } from "./lists.ts";
import type { Owners } from "./owners.ts";
import { mapInParallel } from "./parallel.ts";
import { PodGrouping } from "./pod-grouping.ts";
import type { RuntimeSettings } from "./settings.ts";
import type { RuntimeStatuses } from "./statuses.ts";
import type { Pod } from "./types.ts";

export interface RuntimePodsOptions {
  lists: RuntimeLists;
  statuses: RuntimeStatuses;
  owners: Owners;
  anomalies: Anomalies;
  settings: RuntimeSettings;
  log: Logger;
}

const lookupsAtOnce = 8;

/**
 * Lists pods. A container whose sandbox is not listed is assigned to its pod in earlier lists. If it is not known from
 * them, its labels are read from its status.
 */
export class RuntimePods {
  readonly #options: RuntimePodsOptions;
  // Containers in the last list whose labels do not name a pod.
  #ofNoPod = new Set<string>();
  // Pods whose sandboxes do not have the label, such as those created with crictl.
  readonly #unlabelled = new Set<string>();
  #last: readonly Pod[] = [];
  // Items of the last complete list. Undefined if an item in it was duplicated or not assigned to a pod by
  // the list alone.
  #lastItems: ReadonlySet<PodSandbox | Container> | undefined;

  constructor(options: RuntimePodsOptions) {
    this.#options = options;
  }

  /** Returns all pods. Returns the same array as before if nothing has changed. */
  async all(signal: AbortSignal): Promise<readonly Pod[]> {
    const { lists, owners } = this.#options;
    const listed = await lists.list({}, signal);
    if (this.#isUnchanged(listed)) return this.#last;
    const { grouping, isComplete } = await this.#group(listed, signal);
    owners.listed(grouping.owners);
    this.#last = grouping.pods();
    this.#lastItems = isComplete ? new Set([...listed.sandboxes, ...listed.containers]) : undefined;
    this.#forgetRemoved(listed);
    return this.#last;
  }

  /** Returns one pod. Undefined if the runtime has no sandbox or container for it. */
  async one(podUid: string, signal: AbortSignal): Promise<Pod | undefined> {
    const { lists, owners, anomalies } = this.#options;
    if (this.#unlabelled.has(podUid)) return pick(await this.all(signal), podUid);
    const { grouping } = await this.#group(await lists.list({ podUid }, signal), signal);
    for (const [id, owner] of grouping.owners) owners.remember(id, owner);
    const pod = pick(grouping.pods(), podUid);
    if (pod) return pod;
    const sandboxId = pick(this.#last, podUid)?.sandboxes[0]?.id;
    if (sandboxId === undefined) return undefined;
    // A known pod that is not found by its label was removed, or does not have the label.
    const { sandboxes } = await lists.list({ sandboxId }, signal);
    if (!sandboxes.some(({ id }) => id === sandboxId)) return undefined;
    anomalies.report("podWithoutLabel", podUid);
    this.#unlabelled.add(podUid);
    return pick(await this.all(signal), podUid);
  }

  // An unchanged item is the same object as in the last list. Runtimes list in any order.
  #isUnchanged({ sandboxes, containers }: Listed): boolean {
    const last = this.#lastItems;
    if (last?.size !== sandboxes.length + containers.length) return false;
    return (
      sandboxes.every((sandbox) => last.has(sandbox)) && containers.every((container) => last.has(container))
    );
  }

  /** `isComplete`: every item was assigned to a pod by the list alone. */
  async #group(
    { sandboxes, containers }: Listed,
    signal: AbortSignal,
  ): Promise<{ grouping: PodGrouping; isComplete: boolean }> {
    const { owners, anomalies } = this.#options;
    const grouping = new PodGrouping(anomalies);
    for (const sandbox of sandboxes) grouping.addSandbox(sandbox);
    const unowned: Container[] = [];
    let isComplete = true;
    for (const container of containers) {
      if (grouping.addContainer(container)) continue;
      isComplete = false;
      anomalies.report("containerWithoutSandbox", container.id);
      const owner = owners.find(container.id);
      if (owner) grouping.adopt(container, owner);
      else if (this.#ofNoPod.has(container.id)) anomalies.report("containerOfNoPod", container.id);
      else unowned.push(container);
    }
    if (unowned.length > 0) await this.#adoptByLabels(unowned, grouping, signal);
    isComplete &&= grouping.owners.size === sandboxes.length + containers.length;
    return { grouping, isComplete };
  }

  async #adoptByLabels(
    unowned: readonly Container[],
    grouping: PodGrouping,
    signal: AbortSignal,
  ): Promise<void> {
    const { ownerLookups } = this.#options.settings;
    const { anomalies } = this.#options;
    let slow = false;
    const found = await mapInParallel(
      unowned.slice(0, ownerLookups),
      lookupsAtOnce,
      signal,
      async (container, lookupSignal) => {
        if (container.id === "" || slow) return { container, owner: undefined };
        const owner = await this.#lookUp(container.id, lookupSignal, () => {
          slow = true;
        });
        return { container, owner };
      },
    );
    for (const { container, owner } of found) {
      if (owner) grouping.adopt(container, owner);
    }
    // These are looked up with the next list.
    for (const { id } of unowned.slice(ownerLookups)) anomalies.report("containerPodUnknown", id);
  }

  // A container whose status cannot be read does not fail the list.
  async #lookUp(id: string, signal: AbortSignal, onSlow: () => void): Promise<PodIdentity | undefined> {
    const { statuses, settings, anomalies, log } = this.#options;
    try {
      const owner = await statuses.ownerOf(id, settings.ownerLookupDeadlineMs, signal);
      if (owner) return owner;
      anomalies.report("containerOfNoPod", id);
      this.#ofNoPod.add(id);
    } catch (error) {
      signal.throwIfAborted();
      anomalies.report("containerPodUnknown", id);
      // After one slow lookup, the list does not wait for others.
      if (codeOf(error) === "deadline") onSlow();
      log.debug({ id, err: error }, "failed to look up the pod of a container");
    }
    return undefined;
  }

  #forgetRemoved({ containers }: Listed): void {
    if (this.#ofNoPod.size > 0) {
      this.#ofNoPod = new Set(containers.map(({ id }) => id).filter((id) => this.#ofNoPod.has(id)));
    }
    for (const uid of this.#unlabelled) if (!pick(this.#last, uid)) this.#unlabelled.delete(uid);
  }
}

function pick(pods: readonly Pod[], uid: string): Pod | undefined {
  return pods.find((pod) => pod.uid === uid);
}
