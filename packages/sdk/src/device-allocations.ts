import type {
  DeviceBindingServiceImplementation,
  ReportAllocationsRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { toServerError } from "@nodekeeper/core/grpc";
import { type ClaimToPrepare, claimToUnprepare } from "./device-claim.ts";

/** A claim that has devices with binding conditions, before it is prepared. */
export interface ClaimToBind extends ClaimToPrepare {
  /** Allocation time. If it changes, the claim was deallocated and reallocated, and its conditions start over. */
  allocatedAt: Date;
}

/**
 * Called with all claims that have devices with binding conditions and are not prepared yet: from the time a pod waits
 * to be bound to this node until `prepare` has succeeded or the claim is deallocated. Devices without binding
 * conditions are omitted. Called when the agent connects and after each change, with an empty list if there are none,
 * and again if it throws. A claim that is neither in the last list nor prepared was deallocated: undo what was done for
 * it. Must return within 10 s.
 */
export type AllocationHandler = (claims: ClaimToBind[], signal: AbortSignal) => Promise<void> | void;

/** Serves the agent's reports of allocations to the author's handler. */
export function bindingService(onAllocations: AllocationHandler): DeviceBindingServiceImplementation {
  return {
    async reportAllocations(request, { signal }) {
      try {
        await onAllocations(claimsToBind(request), signal);
        return {};
      } catch (error) {
        throw toServerError(error);
      }
    },
  };
}

function claimsToBind({ claims }: ReportAllocationsRequest): ClaimToBind[] {
  return claims.map((claim) => ({
    ...claimToUnprepare(claim),
    allocatedAt: new Date(Number(claim.allocatedAt)),
  }));
}
