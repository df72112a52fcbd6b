import type {
  Claim,
  DeepPartial,
  PrepareDevicesRequest,
  PreparedClaim,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import {
  ReportAllocationsRequest,
  RestoreClaimsRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { AllocatedDevice, ClaimPod } from "./allocation.ts";
import type { ClaimDetails } from "./claim-details.ts";
import type { ClaimReference } from "./claim-reader.ts";
import type { ClaimRecord } from "./claim-records.ts";
import type { ClaimToBind } from "./claim-to-bind.ts";

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
 * Returns an encoded RestoreClaimsRequest. If it would exceed 4 MiB, the default limit of gRPC servers, annotations,
 * requests and configuration are omitted: authors of claims determine their size, and the driver must be able to
 * receive the message.
 * @param isPrepared returns whether a claim is prepared
 */
export function restoreMessage(
  records: readonly ClaimRecord[],
  isPrepared: (record: ClaimRecord) => boolean,
): Uint8Array {
  const claims: DeepPartial<PreparedClaim>[] = records.map((record) => ({
    ...claimMessage(record, record),
    isPrepared: isPrepared(record),
  }));
  return bounded(claims, (claims) =>
    RestoreClaimsRequest.encode(RestoreClaimsRequest.fromPartial({ claims })).finish(),
  );
}

/** Returns an encoded ReportAllocationsRequest, bounded as `restoreMessage`. */
export function allocationsMessage(toBind: readonly ClaimToBind[]): Uint8Array {
  const claims = toBind.map((claim) => ({
    ...claimMessage(claim, claim),
    allocatedAt: BigInt(claim.allocatedAt),
  }));
  return bounded(claims, (claims) =>
    ReportAllocationsRequest.encode(ReportAllocationsRequest.fromPartial({ claims })).finish(),
  );
}

function bounded<T extends DeepPartial<PrepareDevicesRequest>>(
  claims: T[],
  encode: (claims: T[]) => Uint8Array,
): Uint8Array {
  const whole = encode(claims);
  if (whole.length <= MOST_BYTES) return whole;
  return encode(
    claims.map((each) => ({
      ...each,
      claim: { ...each.claim, annotations: {}, requests: [] },
      devices: each.devices?.map((device) => ({ ...device, configuration: [] })),
    })),
  );
}
