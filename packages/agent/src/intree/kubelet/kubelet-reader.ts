import { type Clock, messageOf } from "@nodekeeper/core/lib";
import type { Host } from "../../host/index.ts";
import type { PodHolding } from "./answer.ts";
import type { ReportedDevices } from "./claimed-zones.ts";
import { KubeletFlags } from "./kubelet-flags.ts";
import { MachineReader } from "./machine.ts";
import { PodResources } from "./pod-resources.ts";
import type { PodUidLookup, RunningPods } from "./pod-uids.ts";
import { type KubeletReporterSettings, parseDeviceZones } from "./settings.ts";
import { KubeletConfig, topologyPolicy } from "./topology-policy.ts";
import { topologyZones, type ZoneOutput } from "./topology-zones.ts";

export interface KubeletReading extends ZoneOutput {
  /** Topology policy in the format of the CustomNodeResource; undefined if unknown. */
  readonly policy: string | undefined;
  /** False if the kubelet omits running pods that it listed before: see `ListedPods`. */
  readonly isComplete: boolean;
}

export interface KubeletReaderOptions {
  settings: KubeletReporterSettings;
  host: Host;
  clock: Clock;
  /** Running pods: PodResources has neither UIDs nor change notifications. */
  pods: RunningPods;
  /** Devices streamed by drivers: PodResources has no NUMA affinity of DRA devices. */
  devices: ReportedDevices;
}

/** Reads the machine, the kubelet and its configuration files, and combines the results. */
export class KubeletReader {
  readonly #options: KubeletReaderOptions;
  readonly #deviceZones: ReadonlyMap<string, string>;
  readonly #machine: MachineReader;
  readonly #config: KubeletConfig;
  readonly #flags: KubeletFlags;
  readonly #listed = new ListedPods();
  #lastPolicy: string | undefined;

  /** Throws `invalid` if a resource has two zone types. */
  constructor(options: KubeletReaderOptions) {
    const { settings, host, clock } = options;
    this.#options = options;
    this.#deviceZones = parseDeviceZones(settings.deviceZones);
    this.#machine = new MachineReader(host);
    this.#config = new KubeletConfig(settings.configFile);
    this.#flags = new KubeletFlags(host, clock);
  }

  /**
   * Reads everything. Throws if the machine or the kubelet can't be read, because a partial reading would look like
   * removed resources. If the policy can't be read, its last value is kept and the error is listed in the problems.
   */
  async read(signal: AbortSignal): Promise<KubeletReading> {
    const { settings, pods, devices, clock } = this.#options;
    // A new connection for each reading, so that none refers to a kubelet that was restarted.
    const podResources = new PodResources(settings.podResourcesSocket);
    try {
      const [machine, policyProblem, answer] = await Promise.all([
        this.#machine.read(signal),
        this.#readPolicy(signal),
        podResources.read(signal),
      ]);
      const podUid = pods.uids();
      const isComplete = this.#listed.isComplete(answer.pods, podUid, clock.monotonic());
      const output = topologyZones({
        machine,
        answer,
        deviceZones: this.#deviceZones,
        siblingNumaMaxDistance: settings.siblingNumaMaxDistance,
        deviceAttributes: devices.attributesOf,
        podUid,
      });
      const problems = policyProblem === undefined ? output.problems : [...output.problems, policyProblem];
      return { ...output, problems, policy: this.#lastPolicy, isComplete };
    } finally {
      podResources.close();
    }
  }

  async #readPolicy(signal: AbortSignal): Promise<string | undefined> {
    if (this.#options.settings.configFile === "") return undefined;
    try {
      // The kubelet's flags override its files.
      const { dropIns, ...flags } = await this.#flags.read(signal);
      this.#lastPolicy = topologyPolicy({ ...(await this.#config.topologyManager(dropIns)), ...flags });
      return undefined;
    } catch (error) {
      return `topology policy: ${messageOf(error)}`;
    }
  }
}

const LONGEST_MS = 60_000;

/**
 * Recognizes responses of a kubelet that does not list all of its pods yet. After its start, the kubelet serves
 * PodResources before it has received its pods from the API server (kubernetes pkg/kubelet/kubelet.go, Run), and
 * responds without them.
 */
class ListedPods {
  /** UIDs of the pods in the last complete response, by namespace and name. */
  #uids: ReadonlyMap<string, string> = new Map();
  #lackingSince: number | undefined;

  /**
   * Returns whether a response lists every pod of the last complete response that is still running. After pods have
   * been missing for a minute, a response counts as complete: the containers of a force-deleted pod may still be
   * running.
   * @param nowMs monotonic milliseconds
   */
  isComplete(pods: readonly PodHolding[], podUid: PodUidLookup, nowMs: number): boolean {
    const uids = new Map<string, string>();
    for (const { namespace, name } of pods) {
      const uid = podUid(namespace, name);
      if (uid !== undefined) uids.set(`${namespace}/${name}`, uid);
    }
    if (this.#lacksNone(uids, podUid)) this.#lackingSince = undefined;
    else this.#lackingSince ??= nowMs;
    if (this.#lackingSince !== undefined && nowMs - this.#lackingSince < LONGEST_MS) return false;
    this.#uids = uids;
    this.#lackingSince = undefined;
    return true;
  }

  #lacksNone(uids: ReadonlyMap<string, string>, podUid: PodUidLookup): boolean {
    for (const [key, uid] of this.#uids) {
      if (uids.has(key)) continue;
      const [namespace = "", name = ""] = key.split("/");
      if (podUid(namespace, name) === uid) return false;
    }
    return true;
  }
}
