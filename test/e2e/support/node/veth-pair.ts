import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Runs ip(8) and returns what it prints as JSON. `enter` are words in front of it. */
export async function ip<T>(args: readonly string[], enter: readonly string[] = []): Promise<T[]> {
  const [command, ...rest] = [...enter, "ip", "-json", ...args];
  const { stdout } = await execute(command!, rest);
  return stdout.trim() === "" ? [] : JSON.parse(stdout);
}

/** A pair of virtual interfaces. The machine's network is that of all nodes that run on it, so names are random. */
export interface VethPair {
  /** For pods. */
  name: string;
  /** Stays on the node, with the address `.1` of the network. */
  peer: string;
  /** The first three bytes of its network, of 24 bits. */
  network: string;
}

/** Adds a pair with an address for its peer: https://www.rfc-editor.org/rfc/rfc2544 has them for tests. */
export async function addVethPair(): Promise<VethPair> {
  const id = randomBytes(3).toString("hex");
  const pair = { name: `nkn${id}`, peer: `nkp${id}`, network: `198.19.${randomBytes(1)[0]}` };
  await execute("ip", ["link", "add", pair.name, "type", "veth", "peer", "name", pair.peer]);
  await execute("ip", ["address", "add", `${pair.network}.1/24`, "dev", pair.peer]);
  await execute("ip", ["link", "set", "dev", pair.peer, "up"]);
  return pair;
}

/** Removes a pair, wherever the other end is. */
export async function removeVethPair({ peer }: VethPair): Promise<void> {
  await execute("ip", ["link", "delete", "dev", peer]).catch(() => {});
}
