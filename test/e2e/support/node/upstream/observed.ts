import type { ApiObject } from "../../admin-client.ts";
import { resources } from "../claims.ts";
import type { ClaimsNode } from "../claims-node.ts";
import { podsPath } from "../workloads.ts";
import { SharedReading } from "./shared-reading.ts";

/** What cases wait for, read once for all of them: each reading alone would be a TLS handshake of each case. */
export class Observed {
  readonly #pods: SharedReading<ApiObject[]>;
  readonly #slices: SharedReading<ApiObject[]>;
  readonly #registrations: SharedReading<string[]>;

  constructor({ cluster, agent }: ClaimsNode) {
    const list = (path: string) =>
      new SharedReading<ApiObject[]>(async () => (await cluster.admin.get(path)).items);
    this.#pods = list(podsPath);
    this.#slices = list(`${resources}/resourceslices`);
    this.#registrations = new SharedReading(() =>
      agent.child.log.split("\n").filter((line) => line.includes("registered with the kubelet")),
    );
  }

  /** A pod of the default namespace; undefined if there is none. */
  async pod(name: string): Promise<ApiObject | undefined> {
    return (await this.#pods.next()).find(({ metadata }) => metadata.name === name);
  }

  async slicesOf(driver: string): Promise<ApiObject[]> {
    return (await this.#slices.next()).filter(({ spec }) => spec.driver === driver);
  }

  /** How often the kubelet has registered the agent for a driver. */
  async registrationsOf(driver: string): Promise<number> {
    return (await this.#registrations.next()).filter((line) => line.includes(`"${driver}"`)).length;
  }
}
