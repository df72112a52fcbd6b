import type {
  DeviceBindingServiceImplementation,
  ReportAllocationsRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { toServerError } from "@nodekeeper/core/grpc";
import { type ClaimToPrepare, claimToUnprepare } from "./device-claim.ts";

/** A claim with binding conditions, whose pod waits for them to be bound to this node. */
export interface ClaimToBind extends ClaimToPrepare {
  /** When it was allocated. Another time: it was deallocated meanwhile, and all conditions begin anew. */
  allocatedAt: Date;
}

/**
 * Called with all claims that have devices with binding conditions and a pod that waits to be bound to this node: when the
 * agent connects and after each change; an empty list if there are none. The agent calls again if it throws. Devices
 * without binding conditions are left out. A claim that is absent was bound, in which case `prepare` is called, or has been
 * deallocated.
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
