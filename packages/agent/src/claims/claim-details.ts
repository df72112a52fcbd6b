import { type KubeObject, recordOf, recordsOf, textOf } from "@nodekeeper/core/kube";

/** A request of a ResourceClaim's specification, as its author wrote it and the API server defaulted it. */
export interface ClaimRequest {
  /** "<request>" or "<request>/<subrequest>". */
  name: string;
  deviceClassName: string;
  /** "ExactCount" or "All". */
  allocationMode: string;
  /** 0 unless the mode is "ExactCount". */
  count: number;
  adminAccess: boolean;
  /** CEL expressions. */
  selectors: string[];
  /** Requested parts of shared devices: quantities by capacity name. */
  capacity: Record<string, string>;
}

/** What a driver gets of a ResourceClaim besides the allocated devices. */
export interface ClaimDetails {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  requests: ClaimRequest[];
}

/** Details of a claim whose record has none: recorded from its CDI file, or by an older agent. */
export const noDetails: ClaimDetails = { labels: {}, annotations: {}, requests: [] };

/** Returns the details of a ResourceClaim of resource.k8s.io v1, v1beta2 or v1beta1. Alternatives are listed each. */
export function detailsOf({ metadata, spec }: KubeObject): ClaimDetails {
  const requests = recordsOf(recordOf(recordOf(spec).devices).requests);
  return {
    labels: textsOf(metadata.labels),
    annotations: textsOf(metadata.annotations),
    requests: requests.flatMap((request) => {
      const name = textOf(request.name);
      const alternatives = recordsOf(request.firstAvailable);
      if (alternatives.length > 0)
        return alternatives.map((each) => requestOf(`${name}/${textOf(each.name)}`, each));
      // v1beta1 has the fields of `exactly` in the request itself.
      return [requestOf(name, "exactly" in request ? recordOf(request.exactly) : request)];
    }),
  };
}

function requestOf(name: string, fields: Record<string, unknown>): ClaimRequest {
  return {
    name,
    deviceClassName: textOf(fields.deviceClassName),
    allocationMode: textOf(fields.allocationMode),
    count: typeof fields.count === "number" ? fields.count : 0,
    adminAccess: fields.adminAccess === true,
    selectors: recordsOf(fields.selectors).map(({ cel }) => textOf(recordOf(cel).expression)),
    capacity: textsOf(recordOf(fields.capacity).requests),
  };
}

function textsOf(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(recordOf(value)).map(([name, text]) => [name, String(text)]));
}
