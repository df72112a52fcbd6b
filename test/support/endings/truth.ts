import type { RecordedRequest, RequestRecorder } from "./request-recorder.ts";

/** Who ended a pod: the agent, another client, or nobody yet. */
export type Truth = "ours" | "other" | "alive";

/** The User-Agent product of the agent under test. */
export const AGENT = "nodekeeper";

/**
 * Who ended a pod, by what the API server was asked and answered. The first of these in the order of the answers decides:
 * an accepted eviction, an accepted deletion, a status with a final phase.
 */
export function truthOf({ requests }: Pick<RequestRecorder, "requests">, uid: string): Truth {
  const first = requests.find((request) => request.uid === uid && endsPod(request));
  if (first === undefined) return "alive";
  return first.kind === "evict" && first.client === AGENT ? "ours" : "other";
}

/** Evictions of the agent that the API server accepted, as UIDs: a pod that was evicted twice is there twice. */
export function acceptedEvictions({ requests }: Pick<RequestRecorder, "requests">): string[] {
  return requests
    .filter(({ client, kind, status }) => client === AGENT && kind === "evict" && isAccepted(status))
    .map(({ uid }) => uid ?? "unknown");
}

function endsPod({ kind, status, phase }: RecordedRequest): boolean {
  if (!isAccepted(status)) return false;
  if (kind === "evict" || kind === "delete") return true;
  return kind === "status" && (phase === "Failed" || phase === "Succeeded");
}

function isAccepted(status: number): boolean {
  return status >= 200 && status < 300;
}
