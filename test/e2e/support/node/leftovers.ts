import { readdirSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { basename, join } from "node:path";
import { cgroupHierarchies } from "../cgroups.ts";

/** What is left on this machine of a node: each named in words. @param podAddress the IPv4 address of one of its pods */
export function leftovers(clusterDirectory: string, podAddress: string): string[] {
  const name = basename(clusterDirectory);
  const mounts = read("/proc/self/mounts").split("\n");
  const cgroups = cgroupHierarchies().flatMap((hierarchy) =>
    readdirSync(join("/sys/fs/cgroup", hierarchy)).map((cgroup) => join(hierarchy, cgroup)),
  );
  const processes = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && pid !== String(process.pid));
  return [
    ...mounts.filter((line) => line.includes(name)).map((line) => `mount ${line}`),
    ...cgroups.filter((path) => path.includes(name)).map((path) => `cgroup ${path}`),
    ...processes.flatMap((pid) => {
      const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
      return command.includes(name) ? [`process ${pid}: ${command}`] : [];
    }),
    ...interfacesOf(podAddress).map((each) => `network interface ${each}`),
  ];
}

/** The machine's ends of the links to pods in the network of this address. */
export function interfacesOf(podAddress: string): string[] {
  const network = podAddress.slice(0, podAddress.lastIndexOf(".") + 1);
  return Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses.some(({ address }) => address.startsWith(network)) ? [name] : [],
  );
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
