import { basename, join } from "node:path";
import { root, run } from "../../scripts/programs.ts";
import { buildGo, requiredVersion } from "../../test/e2e/prepare/go-build.ts";
import type { Part } from "../../test/e2e/support/parts.ts";
import { measurements } from "./measurements.ts";
import type { Peer } from "./row.ts";
import { type RowName, rows, type Workload } from "./rows.ts";

/** The programs that a workload needs besides the agent. */
export interface Programs {
  peer: string;
  /** Empty if it has none. */
  plugins: string;
  /** What the peer is, with its version. */
  version: string;
}

/**
 * Builds the programs of a workload, once, and puts the real parts that it needs in place.
 * @param row one of the workload
 * @param onlyCached builds no Go program: one that has not been built yet is missing
 */
export async function prepare(
  row: RowName,
  workload: Workload,
  onlyCached: boolean,
): Promise<Programs | { missing: string }> {
  const { peer, parts = [] } = rows[row];
  const { plugins } = measurements[workload];
  const built = await build(peer, onlyCached);
  if ("missing" in built) return built;
  const called = plugins ? await build(plugins, onlyCached) : { path: "", version: "" };
  if ("missing" in called) return called;
  if (parts.length > 0) await run(process.execPath, ["test/e2e/prepare.ts", ...parts], { cwd: root });
  return { peer: built.path, plugins: called.path, version: built.version };
}

async function build(peer: Peer, onlyCached: boolean): Promise<Part> {
  if (peer === "empty process") return { path: process.execPath, version: "" };
  const { directory, program = ".", module } = peer;
  const path = join(import.meta.dirname, directory);
  const version = requiredVersion(path, module);
  const name = `peer-${directory}${program === "." ? "" : `-${basename(program)}`}`;
  const part = await buildGo({ name, module: path, package: program, version, onlyCached });
  return "missing" in part ? part : { ...part, version: `, ${module} ${part.version}` };
}
