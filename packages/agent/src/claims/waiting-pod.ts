import { type KubeObject, recordOf, recordsOf, textOf } from "@nodekeeper/core/kube";
import type { ClaimPod } from "./allocation.ts";

/** A pod that waits to be bound, and its claims. */
export interface WaitingPod {
  namespace: string;
  pod: ClaimPod;
  /** Names of its claims that exist. */
  claims: string[];
}

/** Returns a pod that waits to be bound, with the names of its claims. */
export function waitingPod({ metadata, spec, status }: KubeObject): WaitingPod {
  const { name = "", namespace = "", uid = "" } = metadata;
  const { serviceAccountName, resourceClaims: wanted } = recordOf(spec);
  const { resourceClaimStatuses, extendedResourceClaimStatus: extended } = recordOf(status);
  // Claims in the spec have a name or a template; the status has the names of those created from templates.
  const named = [...recordsOf(wanted), ...recordsOf(resourceClaimStatuses), recordOf(extended)];
  const claims = named.map(({ resourceClaimName }) => textOf(resourceClaimName)).filter(Boolean);
  const serviceAccount = textOf(serviceAccountName);
  const pod = { name, uid, ...(serviceAccount ? { serviceAccount } : {}) };
  return { namespace, pod, claims };
}
