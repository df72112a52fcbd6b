import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

// Of /proc/net/route: interface, destination, and the mask at the end of the columns that are read.
const ipv4Default = /^(\S+)\t00000000\t(?:\S+\t){5}00000000\t/;
// Of /proc/net/ipv6_route: destination and length of its prefix, and the interface in the last column.
const ipv6Default = /^0{32} 00 .* (\S+)\s*$/;

/**
 * Returns the interface that carries a default route of the node: `name` itself, or one stacked on it, such as the
 * bond, bridge or VLAN of a network card. Undefined if none of them does. Throws if the interfaces can't be read.
 * @param root path at which the agent sees the host's root directory
 * @param carriers result of `defaultRoutes`
 */
export async function defaultRouteOver(
  root: string,
  name: string,
  carriers: ReadonlySet<string>,
): Promise<string | undefined> {
  const seen = new Set([name]);
  // The set grows while it is iterated.
  for (const each of seen) {
    if (carriers.has(each)) return each;
    for (const upper of await uppers(root, each)) seen.add(upper);
  }
  return undefined;
}

/**
 * Returns the interfaces that carry a default route of the node. Reads the routing tables `main` of the node's network
 * namespace, which is that of process 1. Throws if they can't be read.
 */
export async function defaultRoutes(root: string): Promise<ReadonlySet<string>> {
  const ipv4 = await readFile(join(root, "proc/1/net/route"), "utf8");
  const ipv6 = await readFile(join(root, "proc/1/net/ipv6_route"), "utf8").catch((error) => {
    // A kernel without IPv6.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  });
  const found = [
    ...ipv4.split("\n").map((line) => ipv4Default.exec(line)?.[1]),
    ...ipv6.split("\n").map((line) => ipv6Default.exec(line)?.[1]),
  ];
  // IPv6 has an entry that rejects unknown destinations, on "lo".
  return new Set(found.filter((name) => name !== undefined && name !== "lo" && name !== "*") as string[]);
}

async function uppers(root: string, name: string): Promise<string[]> {
  const prefix = "upper_";
  try {
    const entries = await readdir(join(root, "sys/class/net", name));
    return entries.filter((entry) => entry.startsWith(prefix)).map((entry) => entry.slice(prefix.length));
  } catch (error) {
    // A container may have the interface already.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
