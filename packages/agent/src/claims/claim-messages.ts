import type {
  Claim,
  DeepPartial,
  PrepareDevicesRequest,
  PreparedClaim,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { RestoreClaimsRequest } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { AllocatedDevice, ClaimPod } from "./allocation.ts";
import type { ClaimDetails } from "./claim-details.ts";
import type { ClaimReference } from "./claim-reader.ts";
import type { ClaimRecord } from "./claim-records.ts";

/** The default limit of gRPC servers for a message. */
const MOST_BYTES = 4 * 1024 * 1024;

interface Described {
  pods: readonly ClaimPod[];
  devices: readonly AllocatedDevice[];
  details?: ClaimDetails | undefined;
}

/** Returns a claim as drivers receive it in each of their calls. */
export function claimMessage(
  { namespace, name, uid }: ClaimReference,
  { details, pods, devices }: Described,
): DeepPartial<PrepareDevicesRequest> {
  const claim: DeepPartial<Claim> = {
    namespace,
    name,
    uid,
    ...details,
    requests: details?.requests.map((request) => ({ ...request, count: BigInt(request.count) })) ?? [],
  };
  return { claim, pods: pods.map((pod) => ({ ...pod, namespace })), devices: [...devices] };
}

/**
 * Returns an encoded RestoreClaimsRequest. It has no annotations, requests and configuration if it would otherwise exceed
 * 4 MiB: authors of claims decide about their size, and a driver must be able to receive it.
 * @param isPrepared whether a claim is prepared
 */
export function restoreMessage(
  records: readonly ClaimRecord[],
  isPrepared: (record: ClaimRecord) => boolean,
): Uint8Array {
  const encode = (claims: DeepPartial<PreparedClaim>[]) =>
    RestoreClaimsRequest.encode(RestoreClaimsRequest.fromPartial({ claims })).finish();
  const claims = records.map((record) => ({
    ...claimMessage(record, record),
    isPrepared: isPrepared(record),
  }));
  const whole = encode(claims);
  if (whole.length <= MOST_BYTES) return whole;
  return encode(
    claims.map(({ claim, devices = [], ...rest }) => ({
      ...rest,
      claim: { ...claim, annotations: {}, requests: [] },
      devices: devices.map((device) => ({ ...device, configuration: [] })),
    })),
  );
}
