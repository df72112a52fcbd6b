import { status } from "@grpc/grpc-js";
import { NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { CallFault, RuntimeCall } from "./call-faults.ts";

/** A fault as data. Without a method, pod or ID it hits every call; the first rule that matches counts. */
export interface FaultRule {
  /** "ListContainers" */
  method?: string;
  podUid?: string;
  /** Of a container or sandbox. */
  id?: string;
  /** How many calls it hits. Default: all. */
  times?: number;
  /** Exactly one of these five is set: the fault. */
  delayMs?: number;
  hang?: true;
  /** A name of gRPC's: "UNAVAILABLE". */
  code?: string;
  /** The answer instead, in base64. */
  bytes?: string;
  /** The answer instead: so many bytes of garbage. At most 64 MiB. */
  garbage?: number;
}

const MOST_GARBAGE = 64 * 2 ** 20;

/** Makes of rules what SimulatedCri asks. Throws `invalid` for a rule that names no fault, or one that is none. */
export function faultsOf(rules: readonly FaultRule[]): (call: RuntimeCall) => CallFault | undefined {
  const faults = rules.map((rule, at) => ({
    rule,
    left: rule.times ?? Number.POSITIVE_INFINITY,
    fault: faultOf(rule, at),
  }));
  return (call) => {
    const hit = faults.find(({ rule, left }) => left > 0 && matches(rule, call));
    if (!hit) return undefined;
    hit.left--;
    return hit.fault;
  };
}

function matches({ method, podUid, id }: FaultRule, call: RuntimeCall): boolean {
  return (
    (method === undefined || method === call.method) &&
    (podUid === undefined || podUid === call.podUid) &&
    (id === undefined || id === call.id)
  );
}

function faultOf({ delayMs, hang, code, bytes, garbage }: FaultRule, at: number): CallFault {
  if (delayMs !== undefined) return { delayMs };
  if (hang) return { hang };
  if (bytes !== undefined) return { bytes: Buffer.from(bytes, "base64") };
  if (garbage !== undefined) return { bytes: Buffer.alloc(Math.min(garbage, MOST_GARBAGE), 0xff) };
  if (code === undefined) {
    throw new NodekeeperError(
      "invalid",
      `faults[${at}]: names none of delayMs, hang, code, bytes and garbage`,
    );
  }
  const number = status[code as keyof typeof status];
  if (typeof number !== "number") {
    throw new NodekeeperError("invalid", `faults[${at}].code: ${quote(code)} is no status of gRPC`);
  }
  return { code: number, message: `the simulation is configured to answer ${code}` };
}
