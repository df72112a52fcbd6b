import { PrepareDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { quote } from "@nodekeeper/core/lib";
import {
  type AllocatedDevice,
  type Allocation,
  baseRequest,
  type DeviceIdentity,
  sameDevice,
} from "./allocation.ts";
import { checkAnnotations } from "./cdi-annotations.ts";
import { type FileOwner, fileText } from "./cdi-file.ts";
import { type CdiDevice, lowestVersion } from "./cdi-version.ts";
import { checkInterfaces } from "./claim-interfaces.ts";
import { type CdiEdits, cdiEdits } from "./container-edits.ts";
import type { MetadataMount } from "./device-metadata.ts";
import type { HostFiles } from "./host-files.ts";
import type { PreparedDevice } from "./recorded-devices.ts";
import { checking, RefusedAnswer } from "./refused-answer.ts";

/** The result of preparing a claim. */
export interface Prepared {
  devices: PreparedDevice[];
  /** Text of the CDI file; empty if none is needed. */
  cdi: string;
}

const MOST_OWN_IDS = 64;
// CDI requires an edit of each device, also if there are only edits for the whole claim.
const NO_EDITS: CdiEdits = { env: ["NODEKEEPER_PREPARED=true"] };
// https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md: "vendor/class=name".
const cdiId = /^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]\/[A-Za-z][A-Za-z0-9_.-]*=[A-Za-z0-9][A-Za-z0-9_.:-]*$/;

/**
 * Converts the driver's answer for a claim to a CDI file and the devices for the kubelet. Names of CDI devices contain
 * the claim's UID, because container runtimes may cache the edits of a name. Throws `invalid`, with device and field,
 * if the answer does not match the claim or violates the CDI specification.
 * @param metadata mounts by request: containers get that of a request with its first device
 */
export async function preparedOf(
  owner: Omit<FileOwner, "devices">,
  allocated: readonly AllocatedDevice[],
  { devices: answered, edits: claimEdits }: PrepareDevicesResponse,
  host: HostFiles,
  metadata: ReadonlyMap<string, MetadataMount> = new Map(),
): Promise<Prepared> {
  const devices: PreparedDevice[] = [];
  const cdiDevices: CdiDevice[] = [];
  const names = new Set<string>();
  const mounts = new Map(metadata);
  for (const unknown of answered.filter((device) => !allocated.some((each) => sameDevice(each, device))))
    throw new RefusedAnswer(`the driver prepared ${nameOf(unknown)}, which the claim does not have`, unknown);
  const containerEdits =
    claimEdits && (await checking("the claim", undefined, () => cdiEdits(claimEdits, host)));
  for (const each of allocated) {
    const { request, pool, device, shareId } = each;
    const identity = { request, pool, device, shareId };
    const [answer, second] = answered.filter((one) => sameDevice(one, identity));
    if (!answer) throw new RefusedAnswer(`the driver did not prepare ${nameOf(identity)}`, identity);
    if (second) throw new RefusedAnswer(`the driver prepared ${nameOf(identity)} twice`, identity);
    const ownIds = checkedIds(owner.driver, identity, answer.cdiDeviceIds, host);
    const { edits, annotations } = answer;
    const isAnnotated = Object.keys(annotations).length > 0;
    const mount = mounts.get(baseRequest(request));
    mounts.delete(baseRequest(request));
    // A container gets the edits of the claim with any CDI device of its file.
    if (!edits && !isAnnotated && !containerEdits && !mount) {
      devices.push({ ...each, cdiDeviceIds: ownIds });
      continue;
    }
    const deviceEdits = await checking(nameOf(identity), identity, async () => {
      checkAnnotations(annotations);
      return edits && (await cdiEdits(edits, host));
    });
    const name = freeName(`${owner.uid}_${device}`, names);
    cdiDevices.push({
      name,
      ...(isAnnotated && { annotations }),
      containerEdits: withMount(deviceEdits, mount),
    });
    devices.push({ ...each, cdiDeviceIds: [`${kindOf(owner.driver)}=${name}`, ...ownIds] });
  }
  if (cdiDevices.length === 0) return { devices, cdi: "" };
  const spec = { kind: kindOf(owner.driver), devices: cdiDevices, ...(containerEdits && { containerEdits }) };
  checkInterfaces(spec);
  return { devices, cdi: fileText({ ...owner, devices }, { cdiVersion: lowestVersion(spec), ...spec }) };
}

function withMount(edits: CdiEdits | undefined, mount: MetadataMount | undefined): CdiEdits {
  if (!mount) return edits ?? NO_EDITS;
  return { ...edits, mounts: [...(edits?.mounts ?? []), mount] };
}

/** Returns the answer of a driver whose devices need no preparation. */
export function withoutEdits({ devices }: Allocation): PrepareDevicesResponse {
  return PrepareDevicesResponse.fromPartial({
    devices: devices.map(({ request, pool, device, shareId }) => ({ request, pool, device, shareId })),
  });
}

// A vendor must start with a letter; a driver's name need not.
function kindOf(driver: string): string {
  return `k8s.${driver}/claim`;
}

function checkedIds(
  driver: string,
  identity: DeviceIdentity,
  ids: string[],
  { isRestricted }: HostFiles,
): string[] {
  const refusal = (message: string) => new RefusedAnswer(`${nameOf(identity)}: ${message}`, identity);
  if (ids.length > MOST_OWN_IDS) throw refusal(`has more than ${MOST_OWN_IDS} CDI devices`);
  const wrong = ids.find((id) => !cdiId.test(id) || id.length > 512);
  if (wrong !== undefined) throw refusal(`cdiDeviceIds: ${quote(wrong)} is not "<vendor>/<class>=<name>"`);
  const foreign = ids.find((id) => ![driver, `k8s.${driver}`].includes(id.split("/")[0]!));
  if (isRestricted && foreign !== undefined)
    throw refusal(
      `cdiDeviceIds: the vendor of ${quote(foreign)} is not ${driver} (devices.kubeletPlugin.hostPaths)`,
    );
  return ids;
}

// One device may be allocated for several requests of a claim. Names of devices contain no underscore.
function freeName(name: string, names: Set<string>): string {
  let free = name;
  for (let number = 2; names.has(free); number++) free = `${name}_${number}`;
  names.add(free);
  return free;
}

function nameOf({ request, pool, device, shareId }: DeviceIdentity): string {
  return `device ${pool}/${device}${shareId === "" ? "" : ` share ${shareId}`} of request ${request}`;
}
