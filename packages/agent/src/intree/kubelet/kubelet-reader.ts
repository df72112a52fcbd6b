import { type Clock, messageOf } from "@nodekeeper/core/lib";
import type { Host } from "../../host/index.ts";
import type { ReportedDevices } from "./claimed-zones.ts";
import { KubeletFlags } from "./kubelet-flags.ts";
import { MachineReader } from "./machine.ts";
import { PodResources } from "./pod-resources.ts";
import type { RunningPods } from "./pod-uids.ts";
import type { KubeletReporterSettings } from "./settings.ts";
import { KubeletConfigFile, topologyPolicy } from "./topology-policy.ts";
import { topologyZones, type ZoneOutput } from "./topology-zones.ts";

export interface KubeletReading extends ZoneOutput {
  /** As the CustomNodeResource has it; undefined where it is not known. */
  readonly policy: string | undefined;
}

export interface KubeletReaderOptions {
  settings: KubeletReporterSettings;
  host: Host;
  clock: Clock;
  /** The kubelet does not tell UIDs, nor when something changes. */
  pods: RunningPods;
  /** The kubelet does not tell where devices of DRA drivers are; their drivers may. */
  devices: ReportedDevices;
}

/** Reads the machine, the kubelet and its configuration file, and puts together what they say. */
export class KubeletReader {
  readonly #settings: KubeletReporterSettings;
  readonly #pods: RunningPods;
  readonly #devices: ReportedDevices;
  readonly #machine: MachineReader;
  readonly #configFile: KubeletConfigFile;
  readonly #flags: KubeletFlags;
  #lastPolicy: string | undefined;

  constructor({ settings, host, clock, pods, devices }: KubeletReaderOptions) {
    this.#settings = settings;
    this.#pods = pods;
    this.#devices = devices;
    this.#machine = new MachineReader(host);
    this.#configFile = new KubeletConfigFile(settings.configFile);
    this.#flags = new KubeletFlags(host, clock);
  }

  /**
   * Reads everything anew. Throws where the machine or the kubelet can't be read: half a reading would look as if
   * something had gone. A policy that can't be read stays what it was, and is named among the problems.
   */
  async read(signal: AbortSignal): Promise<KubeletReading> {
    const { podResourcesSocket, maxAnswerBytes, deviceZones } = this.#settings;
    // A connection for each reading: none is left over from a kubelet that was restarted.
    const podResources = new PodResources(podResourcesSocket, maxAnswerBytes);
    try {
      const [machine, policyProblem, answer] = await Promise.all([
        this.#machine.read(signal),
        this.#readPolicy(signal),
        podResources.read(signal),
      ]);
      const output = topologyZones({
        machine,
        answer,
        deviceZones,
        deviceAttributes: this.#devices.attributesOf,
        podUid: this.#pods.uids(),
      });
      const problems = policyProblem === undefined ? output.problems : [...output.problems, policyProblem];
      return { ...output, problems, policy: this.#lastPolicy };
    } finally {
      podResources.close();
    }
  }

  async #readPolicy(signal: AbortSignal): Promise<string | undefined> {
    const { configFile, topologyManager } = this.#settings;
    if (!topologyManager && configFile === "") return undefined;
    try {
      if (topologyManager) {
        this.#lastPolicy = topologyPolicy(topologyManager);
        return undefined;
      }
      // The kubelet takes a flag before its file.
      const file = await this.#configFile.topologyManager();
      this.#lastPolicy = topologyPolicy({ ...file, ...(await this.#flags.read(signal)) });
      return undefined;
    } catch (error) {
      return `topology policy: ${messageOf(error)}`;
    }
  }
}
