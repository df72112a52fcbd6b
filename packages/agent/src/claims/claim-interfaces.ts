import { DriverAnswerRefused } from "@nodekeeper/api/errors";
import { quote } from "@nodekeeper/core/lib";
import { specOf } from "./cdi-file.ts";
import { type CdiSpec, editsOf } from "./cdi-version.ts";
import type { ClaimRecord } from "./claim-records.ts";
import type { CdiNetDevice } from "./linux-edits.ts";

/**
 * Throws `invalid` if the edits of a claim name an interface of the node twice, or use a name in the container twice.
 * All containers of a pod share one network namespace.
 */
export function checkInterfaces(spec: Pick<CdiSpec, "devices" | "containerEdits">): void {
  const all = editsOf(spec).flatMap(({ netDevices = [] }) => netDevices);
  const problemOf = (texts: string[], what: string) => {
    const twice = texts.find((text, at) => texts.indexOf(text) !== at);
    if (twice === undefined) return;
    throw new DriverAnswerRefused({ problem: `edits.netDevices: ${what} ${quote(twice)} is given twice` });
  };
  problemOf(
    all.map(({ hostInterfaceName }) => hostInterfaceName),
    "the node's interface",
  );
  problemOf(
    all.map(({ name }) => name),
    "the container's interface",
  );
}

/**
 * Throws `invalid` if another claim that is prepared, or whose containers may still run, has an interface
 * that this CDI file names. Call it in the same turn of the event loop as the recording of the claim: of two
 * claims prepared concurrently, the second then finds the first.
 */
export function refuseTakenInterfaces(
  cdi: string,
  { driver, uid }: Pick<ClaimRecord, "driver" | "uid">,
  records: readonly Pick<ClaimRecord, "driver" | "uid" | "namespace" | "name" | "cdi">[],
): void {
  const wanted = interfacesOf(cdi).map(({ hostInterfaceName }) => hostInterfaceName);
  if (wanted.length === 0) return;
  for (const other of records) {
    if (other.uid === uid && other.driver === driver) continue;
    const taken = interfacesOf(other.cdi).find(({ hostInterfaceName }) => wanted.includes(hostInterfaceName));
    if (!taken) continue;
    const holder = `ResourceClaim ${other.namespace}/${other.name} of driver ${other.driver}`;
    throw new DriverAnswerRefused({
      problem: `edits.netDevices: ${holder} has the node's interface ${quote(taken.hostInterfaceName)}`,
    });
  }
}

// Few claims have any: the others are not parsed.
function interfacesOf(cdi: string): CdiNetDevice[] {
  if (!cdi.includes('"netDevices"')) return [];
  return editsOf(specOf(cdi)).flatMap(({ netDevices = [] }) => netDevices);
}
