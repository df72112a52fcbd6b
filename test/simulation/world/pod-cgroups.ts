import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { SimulatedRuntime } from "@nodekeeper/testing";
import { HostFile } from "./host-file.ts";

/** The cgroup of a pod. */
interface PodCgroup {
  readonly name: string;
  readonly directory: string;
  /** Number of processes and threads. Without a value while there is no cgroup. */
  readonly pids: HostFile<number>;
}

/** Number of processes of a pod that is not changed. */
export const FEW_PIDS = 10;
// More than 0.1 % of the machine's memory.
const MEMORY_BYTES = 512 * 2 ** 20;

/** Cgroups of pods, each of which exists while a container of its pod runs. */
export class PodCgroups {
  readonly #parent: string;
  readonly #runtime: SimulatedRuntime;
  readonly #now: () => number;
  readonly #byUid = new Map<string, PodCgroup>();

  /** @param parent directory of the cgroups */
  constructor(parent: string, runtime: SimulatedRuntime, now: () => number) {
    this.#parent = parent;
    this.#runtime = runtime;
    this.#now = now;
  }

  /** The cgroups that exist now. */
  get present(): PodCgroup[] {
    return [...this.#byUid.values()].filter(({ pids }) => pids.value !== undefined);
  }

  /** Returns the number of processes of a pod over time. Undefined if it never ran. */
  pidsOf(uid: string): HostFile<number>["readable"] | undefined {
    return this.#byUid.get(uid)?.pids.readable;
  }

  /** Creates or removes the cgroup of a pod, as its containers run or not. */
  sync({ uid, name }: { uid: string; name: string }): void {
    const isRunning = [...this.#runtime.containers.values()].some(
      ({ pod, state }) => pod.uid === uid && state === ContainerState.CONTAINER_RUNNING,
    );
    const cgroup = this.#byUid.get(uid);
    if (isRunning === (cgroup?.pids.value !== undefined)) return;
    if (isRunning) this.#create(cgroup ?? this.#add(uid, name));
    else if (cgroup) {
      cgroup.pids.vanish();
      rmSync(cgroup.directory, { recursive: true });
    }
  }

  #add(uid: string, name: string): PodCgroup {
    const directory = join(this.#parent, `pod${uid}`);
    const file = join(directory, "pids.current");
    const pids = new HostFile<number>(file, (value) => `${value}\n`, this.#now);
    const cgroup = { name, directory, pids };
    this.#byUid.set(uid, cgroup);
    return cgroup;
  }

  // All pods stall alike: whether there is pressure is decided by the cgroup of burstable pods.
  #create({ directory, pids }: PodCgroup): void {
    mkdirSync(directory);
    writeFileSync(join(directory, "memory.current"), `${MEMORY_BYTES}\n`);
    writeFileSync(join(directory, "memory.pressure"), "some avg10=10.00 avg60=0.00 avg300=0.00 total=1\n");
    pids.set(FEW_PIDS);
  }
}
