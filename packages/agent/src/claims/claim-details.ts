import { type KubeObject, recordOf, recordsOf, textOf } from "@nodekeeper/core/kube";

/** A request of a ResourceClaim, or one of its alternatives, as specified. */
export interface ClaimRequest {
  /** "<request>" or "<request>/<subrequest>". */
  name: string;
  deviceClassName: string;
  /** "ExactCount" or "All". */
  allocationMode: string;
  count: number;
  adminAccess: boolean;
  /** CEL expressions. */
  selectors: string[];
  /** Requested quantities by capacity name. */
  capacity: Record<string, string>;
}

/** What drivers receive of a ResourceClaim beside its allocation. */
export interface ClaimDetails {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  requests: ClaimRequest[];
}

/** Returns the details of a ResourceClaim of resource.k8s.io v1, v1beta2 or v1beta1. */
export function detailsOf({ metadata, spec }: KubeObject): ClaimDetails {
  const requests = recordsOf(recordOf(recordOf(spec).devices).requests);
  return {
    labels: textsOf(metadata.labels),
    annotations: textsOf(metadata.annotations),
    requests: requests.flatMap((request) => {
      const name = textOf(request.name);
      const alternatives = recordsOf(request.firstAvailable);
      if (alternatives.length === 0) {
        // In v1beta1, the fields of `exactly` are fields of the request itself.
        return [requestOf(name, "exactly" in request ? recordOf(request.exactly) : request)];
      }
      return alternatives.map((one) => requestOf(`${name}/${textOf(one.name)}`, one));
    }),
  };
}

/** Returns an object whose values are strings. */
export function textsOf(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(recordOf(value)).map(([name, each]) => [name, String(each)]));
}

function requestOf(name: string, fields: Record<string, unknown>): ClaimRequest {
  return {
    name,
    deviceClassName: textOf(fields.deviceClassName),
    allocationMode: textOf(fields.allocationMode),
    count: Number.isSafeInteger(fields.count) ? (fields.count as number) : 0,
    adminAccess: fields.adminAccess === true,
    selectors: recordsOf(fields.selectors).map(({ cel }) => textOf(recordOf(cel).expression)),
    capacity: textsOf(recordOf(fields.capacity).requests),
  };
}
