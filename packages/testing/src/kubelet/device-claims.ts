import type { PodResources } from "@nodekeeper/core/gen/podresources/v1/api.ts";
import { isRecord, type KubeObject } from "@nodekeeper/core/kube";
import { type Clock, type Logger, messageOf, type Runnable, sleepOrAbort } from "@nodekeeper/core/lib";
import type { DevStore } from "../apiserver/dev-store.ts";
import { claimFor, claimName, type HeldDevice, heldDevices, isOf } from "./claims.ts";
import { DraKubelet } from "./dra-kubelet.ts";
import { isFinished, type JsonPod } from "./pods.ts";

/** Devices to allocate to pods that name the template in `spec.resourceClaims`. */
export interface ClaimTemplate {
  /** Name used in `resourceClaimTemplateName`. The template exists in all namespaces. */
  name: string;
  driver: string;
  /** Number of the driver's devices. */
  count: number;
}

export interface DeviceClaimsOptions {
  store: DevStore;
  nodeName: string;
  /** Directory in which this node's DRA plugins register. */
  registryDirectory: string;
  templates: readonly ClaimTemplate[];
  clock: Clock;
  log: Logger;
}

const PERIOD_MS = 1_000;
const CLAIMS = "resourceclaims.resource.k8s.io";
const SLICES = "resourceslices.resource.k8s.io";

/**
 * Provides devices for the pods of one node of a development cluster. Creates ResourceClaims for pods that name a
 * template, as the resource claim controller does; allocates devices from ResourceSlices, as the scheduler does; and
 * has the driver's DRA plugin prepare them, as the kubelet does. Unprepares and deletes the claims of deleted pods. A
 * pod's containers do not wait for its devices.
 */
export class DeviceClaims implements Runnable {
  readonly name = "device claims";
  readonly #options: DeviceClaimsOptions;
  // By UID. Kept here because a claim may be deleted before it is unprepared: its pod owns it.
  readonly #prepared = new Map<string, KubeObject>();
  #problem = "";

  constructor(options: DeviceClaimsOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, registryDirectory } = this.#options;
    using kubelet = new DraKubelet(registryDirectory);
    while (!signal.aborted) {
      try {
        await this.#sync(kubelet);
        this.#problem = "";
      } catch (error) {
        // Until the driver is registered, every attempt fails in the same way.
        if (messageOf(error) !== this.#problem)
          log.warn({ err: error }, "claims are not prepared, trying again");
        this.#problem = messageOf(error);
      }
      await sleepOrAbort(clock, PERIOD_MS, signal);
    }
  }

  /** Returns the node's running pods with the devices of their prepared claims, as PodResources lists them. */
  podResources(): PodResources[] {
    const claims = this.#claims();
    return this.#pods()
      .filter(({ status }) => status?.phase === "Running")
      .map((pod) => {
        const own = claims.filter((claim) => isOf(claim, pod) && this.#prepared.has(claim.metadata.uid!));
        const dynamicResources = own.map((claim) => ({
          claimName: claim.metadata.name ?? "",
          claimNamespace: claim.metadata.namespace ?? "",
          claimResources: heldDevices(claim).map(({ driver, pool, device }) => ({
            driverName: driver,
            poolName: pool,
            deviceName: device,
          })),
        }));
        const { name = "", namespace = "" } = pod.metadata;
        const containers = (pod.spec?.containers ?? []).map((container, at) => ({
          name: container.name,
          devices: [],
          cpuIds: [],
          memory: [],
          // The sample workloads have one container each.
          dynamicResources: at === 0 ? dynamicResources : [],
        }));
        return { name, namespace, containers };
      });
  }

  async #sync(kubelet: DraKubelet): Promise<void> {
    const plugins = await kubelet.register();
    const pods = this.#pods().filter((pod) => !isFinished(pod));
    const claims = new Map(this.#claims().map((claim) => [claim.metadata.uid, claim]));
    for (const claim of [...new Map([...this.#prepared, ...claims]).values()]) {
      if (!pods.some((pod) => isOf(claim, pod))) await this.#end(claim, kubelet, plugins);
    }
    for (const pod of pods) {
      if (pod.metadata.deletionTimestamp === undefined) await this.#start(pod, kubelet, plugins);
    }
  }

  async #start(pod: JsonPod, kubelet: DraKubelet, plugins: ReadonlyMap<string, unknown>): Promise<void> {
    const { store, templates } = this.#options;
    for (const { name, resourceClaimTemplateName } of pod.spec?.resourceClaims ?? []) {
      const template = templates.find((each) => each.name === resourceClaimTemplateName);
      if (!template || !plugins.has(template.driver)) continue;
      const known = store.get(CLAIMS, claimName(pod, name), pod.metadata.namespace);
      const claim = known ?? this.#allocate(pod, name, template);
      if (!claim || this.#prepared.has(claim.metadata.uid!)) continue;
      const reference = referenceTo(claim);
      const answer = (await kubelet.prepare(template.driver, reference))[reference.uid];
      if (answer?.error) throw new Error(answer.error);
      this.#prepared.set(reference.uid, claim);
    }
  }

  async #end(claim: KubeObject, kubelet: DraKubelet, plugins: ReadonlyMap<string, unknown>): Promise<void> {
    const reference = referenceTo(claim);
    for (const driver of new Set(heldDevices(claim).map((device) => device.driver))) {
      if (!plugins.has(driver)) return;
      const answer = (await kubelet.unprepare(driver, reference))[reference.uid];
      if (answer?.error) throw new Error(answer.error);
    }
    this.#prepared.delete(reference.uid);
    this.#options.store.delete(CLAIMS, reference.name, reference.namespace);
  }

  // Returns undefined if too few devices are free.
  #allocate(pod: JsonPod, name: string, { driver, count }: ClaimTemplate): KubeObject | undefined {
    const claims = [...this.#claims(), ...this.#prepared.values()];
    const held = new Set(claims.flatMap(heldDevices).map(keyOf));
    const free = this.#devices(driver).filter((device) => !held.has(keyOf(device)));
    if (free.length < count) return undefined;
    return this.#options.store.put(claimFor(pod, name, free.slice(0, count)));
  }

  #devices(driver: string): HeldDevice[] {
    const { store, nodeName } = this.#options;
    return store.list(SLICES).flatMap(({ spec }) => {
      if (!isRecord(spec) || spec.driver !== driver || spec.nodeName !== nodeName) return [];
      const pool = isRecord(spec.pool) ? String(spec.pool.name) : "";
      const devices = Array.isArray(spec.devices) ? spec.devices.filter(isRecord) : [];
      return devices
        .filter(({ taints }) => !Array.isArray(taints) || taints.length === 0)
        .map((device) => ({ driver, pool, device: String(device.name) }));
    });
  }

  #claims(): KubeObject[] {
    return this.#options.store.list(CLAIMS);
  }

  #pods(): JsonPod[] {
    const { store, nodeName } = this.#options;
    return store.list("pods").filter(({ spec }) => isRecord(spec) && spec.nodeName === nodeName);
  }
}

function keyOf({ driver, pool, device }: HeldDevice): string {
  return `${driver}/${pool}/${device}`;
}

function referenceTo({ metadata: { name = "", namespace = "", uid = "" } }: KubeObject) {
  return { name, namespace, uid };
}
