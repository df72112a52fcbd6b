import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "../machine/machine.ts";
import type { History } from "./history.ts";
import { damages, HostFile } from "./host-file.ts";
import { memoryText, PLENTY, TOTAL_KB } from "./host-memory.ts";
import { type ContainerRuntime, reclaimable } from "./node.ts";
import { FEW_PIDS, PodCgroups } from "./pod-cgroups.ts";

const LONGEST_DAMAGE_MS = 20_000;

/** A network interface on a PCI bus. */
interface Interface {
  readonly name: string;
  speedMbps: number;
  isUp: boolean;
  isPresent: boolean;
}

/**
 * The kernel's files that the agent reads. Worlds with policies have the memory only, worlds with in-tree plugins all
 * files that these need, and others none.
 */
export class Host {
  /** Free and available memory, in percent. */
  readonly memory: HostFile<number>;
  /** Memory pressure of the kubelet's cgroup for burstable pods: `some avg10`, in percent. */
  readonly stalls: HostFile<number>;
  /** Number of online CPUs. */
  readonly cpus: HostFile<number>;
  readonly interfaces: readonly Interface[] = [
    { name: "eth0", speedMbps: 25_000, isUp: true, isPresent: true },
    { name: "eth1", speedMbps: 100_000, isUp: true, isPresent: false },
  ];
  readonly pods: PodCgroups;
  /** Whether in-tree plugins run. */
  readonly isWatched: boolean;
  /** Name of the workload whose pods are reclaimed ones, in worlds with in-tree plugins. */
  readonly reclaimed: string | undefined;
  readonly #machine: Machine;
  readonly #history: History;
  readonly #root: string;

  /** @param isWatched whether in-tree plugins run */
  constructor(machine: Machine, history: History, { runtime }: ContainerRuntime, isWatched: boolean) {
    this.#machine = machine;
    this.#history = history;
    this.#root = join(machine.root, "host");
    this.isWatched = isWatched;
    this.reclaimed = isWatched ? machine.pick(reclaimable) : undefined;
    const now = () => machine.scheduler.now;
    const file = <T>(path: string, textOf: (value: T) => string) =>
      new HostFile(join(this.#root, path), textOf, now);
    this.memory = file("proc/meminfo", memoryText);
    this.stalls = file("sys/fs/cgroup/kubepods/burstable/memory.pressure", pressureText);
    this.cpus = file("sys/devices/system/cpu/online", (count) => `0-${count - 1}\n`);
    this.pods = new PodCgroups(join(this.#root, "sys/fs/cgroup/kubepods/besteffort"), runtime, now);
    if (isWatched) this.#boot(runtime);
  }

  /** Writes how much memory is available, in percent. */
  setMemory(percent: number): void {
    this.#history.note("host", `${percent} % of the memory is available`);
    mkdirSync(join(this.#root, "proc"), { recursive: true });
    this.memory.set(percent);
  }

  /** Changes a value that in-tree plugins read. */
  change(): void {
    const machine = this.#machine;
    machine.pick([
      () => this.setMemory(this.#other(this.memory, [2, 8, PLENTY])),
      () => this.#setStalls(this.#other(this.stalls, [0, 40])),
      () => this.#changePod(),
      () => this.#changeDevice(),
    ])();
  }

  /** Damages a file for a while. */
  damage(): void {
    const machine = this.#machine;
    const pods = this.pods.present;
    const [what, file] = machine.pick<[string, HostFile<number>]>([
      ["meminfo", this.memory],
      ["memory.pressure", this.stalls],
      ["cpu/online", this.cpus],
      ...(pods.length > 0 ? [podFile(machine.pick(pods)), podFile(machine.pick(pods))] : []),
    ]);
    const damage = machine.pick(damages);
    this.#history.note("host", `${what} is damaged: ${damage}`);
    file.damage(damage);
    machine.scheduler.after(machine.between(500, LONGEST_DAMAGE_MS), () =>
      machine.init.run(() => {
        this.#history.note("host", `${what} is as it should be`);
        file.repair();
      }),
    );
  }

  /** Repairs all files. */
  repair(): void {
    for (const file of [this.memory, this.stalls, this.cpus, ...this.pods.present.map(({ pids }) => pids)])
      file.repair();
  }

  /** Ends all pressure. */
  relieve(): void {
    if (this.memory.value !== undefined) this.setMemory(PLENTY);
    if (!this.isWatched) return;
    this.#setStalls(0);
    for (const { pids } of this.pods.present) pids.set(FEW_PIDS);
  }

  #boot(runtime: ContainerRuntime["runtime"]): void {
    const directories = [
      "proc/pressure",
      "proc/self",
      "sys/class/net",
      "sys/devices/system/cpu",
      "sys/fs/cgroup/kubepods/burstable",
      "sys/fs/cgroup/kubepods/besteffort",
    ];
    for (const directory of directories) mkdirSync(join(this.#root, directory), { recursive: true });
    writeFileSync(join(this.#root, "proc/self/smaps"), "KernelPageSize: 4 kB\n");
    writeFileSync(join(this.#root, "proc/zoneinfo"), ZONE_INFO);
    writeFileSync(join(this.#root, "sys/fs/cgroup/cgroup.controllers"), "cpu memory pids\n");
    this.setMemory(PLENTY);
    this.#setStalls(0);
    this.cpus.set(8);
    for (const each of this.interfaces) if (each.isPresent) this.#plug(each);
    runtime.subscribe(({ pod }) => this.pods.sync(pod));
  }

  #setStalls(percent: number): void {
    this.#set("% of the time stalls on memory", this.stalls, percent);
    // Here the machine stalls as much as its workload.
    writeFileSync(join(this.#root, "proc/pressure/memory"), pressureText(percent));
  }

  #changePod(): void {
    const pods = this.pods.present;
    if (pods.length === 0) return;
    const { name, pids } = this.#machine.pick(pods);
    this.#set(`processes in ${name}`, pids, this.#other(pids, [FEW_PIDS, 900, 2_000]));
  }

  #changeDevice(): void {
    if (this.#machine.chance(0.5)) {
      this.#set("CPUs are online", this.cpus, this.#other(this.cpus, [4, 6, 8]));
      return;
    }
    const each = this.#machine.pick(this.interfaces);
    each.isPresent = each.name === "eth0" || this.#machine.chance(0.5);
    each.isUp = this.#machine.chance(0.7);
    each.speedMbps = this.#machine.pick([10_000, 25_000, 100_000]);
    this.#history.note("host", `interface ${JSON.stringify(each)}`);
    rmSync(join(this.#root, "sys/class/net", each.name), { force: true });
    if (each.isPresent) this.#plug(each);
  }

  #plug({ name, speedMbps, isUp }: Interface): void {
    const device = `devices/pci0000:00/0000:00:0${name.slice(-1)}.0/net/${name}`;
    const directory = join(this.#root, "sys", device);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "operstate"), isUp ? "up\n" : "down\n");
    writeFileSync(join(directory, "speed"), `${speedMbps}\n`);
    symlinkSync(join("../..", device), join(this.#root, "sys/class/net", name));
  }

  #other({ value }: HostFile<number>, values: readonly number[]): number {
    return this.#machine.pick(values.filter((each) => each !== value));
  }

  #set(what: string, file: HostFile<number>, value: number): void {
    this.#history.note("host", `${value} ${what}`);
    file.set(value);
  }
}

function pressureText(percent: number): string {
  return `some avg10=${percent.toFixed(2)} avg60=0.00 avg300=0.00 total=1\n`;
}

function podFile({ name, pids }: PodCgroups["present"][number]): [string, HostFile<number>] {
  return [`pids.current of ${name}`, pids];
}

// One node. In pages of 4 KiB.
const ZONE_INFO = `Node 0, zone   Normal
  pages free     400000
        min      1000
        low      2000
        managed  ${TOTAL_KB / 4}
      nr_zone_inactive_file 500000
  pagesets
`;
