import { status } from "@grpc/grpc-js";
import { NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { CallFault, RuntimeCall } from "./call-faults.ts";

/** A fault as data. Applies to all calls unless restricted by method, pod or ID. The first matching rule applies. */
export interface FaultRule {
  /** Such as "ListContainers". */
  method?: string;
  podUid?: string;
  /** ID of a container or sandbox. */
  id?: string;
  /** Number of calls to which it applies. Default: all. */
  times?: number;
  /** Set one of these five. If several are set, the precedence is delayMs, hang, bytes, garbage, code. */
  delayMs?: number;
  hang?: true;
  /** Name of a gRPC status: "UNAVAILABLE". */
  code?: string;
  /** Response, in base64. */
  bytes?: string;
  /** Response of this many invalid bytes. Larger numbers are reduced to 64 MiB. */
  garbage?: number;
}

const MOST_GARBAGE = 64 * 2 ** 20;

/** Converts rules to the fault function of SimulatedCri. Throws `invalid` if a rule does not name a valid fault. */
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
