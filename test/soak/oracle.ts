import { allocatable } from "../../packages/agent/src/devices/testing/allocatable.ts";
import { SLICES } from "../../packages/agent/src/devices/testing/device-cluster.ts";
import { NODE, type TestCluster } from "../support/cluster.ts";
import { explainedPod, statesEviction } from "../support/explained.ts";
import { mapDifferences } from "../support/map-differences.ts";
import type { Speaker } from "./peers.ts";
import { allocatableOf } from "./said.ts";

/** An eviction that reached the API server. */
export interface SentEviction {
  uid: string;
  /** "namespace/name". */
  pod: string;
  /** By `performance.now()`. */
  at: number;
}

/** Where the CNR and the Node differ from what reporters report. */
export function publishedDifferences(cluster: TestCluster, reporters: readonly Speaker[]): string[] {
  const capacity: Record<string, string> = cluster.cnr()?.status?.resources?.capacity ?? {};
  const labels: Record<string, string> = cluster.node().metadata.labels ?? {};
  const own = (map: Record<string, string>, prefix: string) =>
    Object.fromEntries(Object.entries(map).filter(([key]) => key.startsWith(prefix)));
  const expected = (prefix: string, mark: string) =>
    Object.fromEntries(reporters.map(({ name, said }) => [`${prefix}${name}`, `${mark}${said.value}`]));
  return [
    ...mapDifferences("capacity", expected("widgets.example/", ""), own(capacity, "widgets.example/")),
    ...mapDifferences("label", expected("example.dev/", "v"), own(labels, "example.dev/")),
    ...Object.keys(cluster.cnr()?.status ?? {})
      .filter((field) => field.startsWith("bulk-"))
      .map((field) => `CNR: field ${field} is there, no plugin reports it`),
  ];
}

/** Where the scheduler would allocate other devices than drivers have. */
export function deviceDifferences(cluster: TestCluster, drivers: readonly Speaker[]): string[] {
  const { devices, pools } = allocatable(cluster.server.store.list(SLICES), NODE);
  const expected = drivers.flatMap(({ said }) => allocatableOf(said)).sort();
  const actual = devices.toSorted();
  const missing = minus(expected, actual);
  const surplus = minus(actual, expected);
  return [
    ...pools
      .filter(({ state }) => state !== "complete")
      .map(({ driver, reason }) => `devices of ${driver}: ${reason}`),
    ...(missing.length > 0 ? [`${missing.length} devices are not allocatable: ${few(missing)}`] : []),
    ...(surplus.length > 0 ? [`${surplus.length} devices are allocatable too many: ${few(surplus)}`] : []),
  ];
}

/**
 * Pods that were evicted twice, and evictions that the state directory can't explain.
 * @param unrecorded spans in which records are lost by contract
 */
export async function evictionDifferences(
  sent: readonly SentEviction[],
  stateDir: string,
  unrecorded: readonly { from: number; to: number }[] = [],
): Promise<string[]> {
  const differences: string[] = [];
  for (const [, [first, ...more]] of Map.groupBy(sent, ({ uid }) => uid)) {
    if (more.length > 0) differences.push(`${first!.pod} was evicted ${more.length + 1} times`);
    if (unrecorded.some(({ from, to }) => first!.at >= from - LONGEST_EVICTION_MS && first!.at <= to))
      continue;
    const page = await explainedPod(stateDir, first!.pod);
    if (!statesEviction(page))
      differences.push(`the eviction of ${first!.pod} is not explained: ${page.slice(0, 300)}`);
  }
  return differences;
}

// An outcome is recorded at most this long after the request: the grace period of the sample pods is 10 s.
const LONGEST_EVICTION_MS = 30_000;

function minus(these: readonly string[], those: readonly string[]): string[] {
  const left = Map.groupBy(those, (each) => each);
  return these.filter((each) => left.get(each)?.pop() === undefined);
}

function few(names: readonly string[]): string {
  return names.length > 5 ? `${names.slice(0, 5).join(", ")} ...` : names.join(", ");
}
