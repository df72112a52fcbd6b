import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { cgroupHierarchies, makeCgroup, removeCgroup } from "../cgroups.ts";
import { Child } from "../child.ts";

// What the kubelet and the CNI plugins set on their machine. They find these values already there, and the machine's
// own stay as they are: pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables.
const kernelSettings = {
  "vm/overcommit_memory": "1",
  "vm/panic_on_oom": "0",
  "kernel/panic": "10",
  "kernel/panic_on_oops": "1",
  "kernel/keys/root_maxkeys": "1000000",
  "kernel/keys/root_maxbytes": "25000000",
  "net/ipv4/ip_forward": "1",
};

/**
 * A machine within this one for the programs of one node: a mount namespace in which /run, /var/lib, /var/log and the
 * cgroups are its own. So they may use the paths that they use on a real machine, several nodes run beside each other,
 * and what they mount, and the network namespaces that they keep by a mount, end with them. Processes and network are
 * shared with the machine. Needs root.
 */
export class Machine {
  /** In front of a command that is to run in it; the process keeps its PID. */
  readonly enter: readonly string[];
  readonly #directory: string;
  readonly #cgroup: string;
  readonly #holder: Child;

  private constructor(directory: string, cgroup: string) {
    this.#directory = directory;
    this.#cgroup = cgroup;
    this.#holder = new Child({
      name: "machine",
      command: "/usr/bin/unshare",
      args: ["--mount", "--propagation", "private", "/bin/sh", "-euc", this.#script()],
      logFile: join(directory, "machine.log"),
    });
    this.#holder.start();
    this.enter = ["/usr/bin/nsenter", `--mount=/proc/${this.#holder.pid}/ns/mnt`];
  }

  /** @param directory an empty directory, whose path names the machine's cgroup */
  static async start(directory: string): Promise<Machine> {
    for (const path of ["run", "var/lib", "var/log", "cgroup"])
      mkdirSync(join(directory, path), { recursive: true });
    for (const [name, value] of Object.entries(kernelSettings)) {
      const file = join(directory, "kernel", name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, `${value}\n`);
    }
    const cgroup = `/${basename(dirname(directory))}-${basename(directory)}`;
    try {
      makeCgroup(cgroup);
      const machine = new Machine(directory, cgroup);
      await machine.#holder.until("set up", async () => {
        if (!existsSync(join(directory, "is-set-up"))) throw new Error("not yet");
      });
      return machine;
    } catch (error) {
      await removeCgroup(cgroup);
      throw error;
    }
  }

  /** A path within it as everybody sees it: where its /run, /var/lib and /var/log are. */
  path(inside: string): string {
    return join(this.#directory, inside);
  }

  /** Kills what still runs in its cgroups, and removes them. */
  async stop(): Promise<void> {
    await removeCgroup(this.#cgroup);
    await this.#holder.kill();
  }

  #script(): string {
    const directory = this.#directory;
    const bind = (from: string, to: string) => `mount --bind '${from}' '${to}'`;
    const own = `${directory}/cgroup`;
    const hierarchies = cgroupHierarchies();
    const isOne = hierarchies.length === 1 && hierarchies[0] === "";
    const cgroups = isOne
      ? [bind(`/sys/fs/cgroup${this.#cgroup}`, own)]
      : [
          `mount -t tmpfs tmpfs '${own}'`,
          ...hierarchies.flatMap((name) => [
            `mkdir '${own}/${name}'`,
            bind(`/sys/fs/cgroup/${name}${this.#cgroup}`, `${own}/${name}`),
          ]),
        ];
    return [
      ...cgroups,
      "umount -R /sys/fs/cgroup",
      `mount --move '${own}' /sys/fs/cgroup`,
      ...Object.keys(kernelSettings).map((name) => bind(`${directory}/kernel/${name}`, `/proc/sys/${name}`)),
      ...["/var/lib", "/var/log", "/run"].map((path) => bind(`${directory}${path}`, path)),
      // As systemd makes them on a real machine, but within this namespace: containers may ask for propagation.
      "mount --make-rshared /",
      `touch '${directory}/is-set-up'`,
      // A path of the directory among its arguments shows whose it is.
      `exec tail -f '${directory}/is-set-up'`,
    ].join("\n");
  }
}
