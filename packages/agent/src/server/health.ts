import { errorIdOf, type HealthCheck, type HealthResult, messageOf } from "@nodekeeper/core/lib";
import { type Reply, textReply } from "./reply.ts";

// Without a trailing newline, as kube-apiserver responds: probes compare the whole body.
const allIsWell: Reply = { ...textReply(200, ""), body: "ok" };

/** The health endpoints by name. */
export const healthEndpoints = ["livez", "readyz", "healthz"] as const;
export type HealthEndpoint = (typeof healthEndpoints)[number];

// A check may quote a plugin's message, which is truncated to one line of this length.
const LONGEST_MESSAGE = 500;

export interface HealthQuestion {
  endpoint: HealthEndpoint;
  checks: readonly HealthCheck[];
  /** As in kube-apiserver: an unauthenticated caller learns which check fails, but not why. */
  withholdReasons: boolean;
}

/**
 * Serves /livez, /readyz and /healthz as kube-apiserver does: "ok", or one line per check with `?verbose` or on
 * failure. `?exclude=name` (repeatable) skips a check. Status 200 or 503. livez runs checks of kind `live`; readyz and
 * healthz run all.
 */
export function healthReply(question: HealthQuestion, query: URLSearchParams): Reply {
  const { endpoint } = question;
  const asked = checksOf(question);
  const excluded = new Set(query.getAll("exclude"));
  const lines: string[] = [];
  let failed = false;
  for (const check of asked) {
    if (excluded.delete(check.name)) {
      lines.push(`[+]${check.name} excluded: ok`);
      continue;
    }
    const { ok, message, warning } = resultOf(check, question);
    failed ||= !ok;
    if (!ok) lines.push(`[-]${check.name} failed: ${message}`);
    else lines.push(warning ? `[+]${check.name} ok, but: ${warning}` : `[+]${check.name} ok`);
  }
  if (!failed && !query.has("verbose")) return allIsWell;
  for (const name of excluded)
    lines.push(`warn: no check named ${JSON.stringify(name.slice(0, 100))} to exclude`);
  lines.push(`${endpoint} check ${failed ? "failed" : "passed"}`);
  return textReply(failed ? 503 : 200, lines.join("\n"));
}

/** Serves /readyz/<name> and the like: runs that check only. 404 if the endpoint does not include it. */
export function singleHealthReply(question: HealthQuestion, name: string): Reply {
  const check = checksOf(question).find((each) => each.name === name);
  if (!check) return textReply(404, `no check named ${JSON.stringify(name.slice(0, 100))}`);
  const { ok, message } = resultOf(check, question);
  return ok ? allIsWell : textReply(503, `failed: ${message}`);
}

function checksOf({ checks, endpoint }: HealthQuestion): readonly HealthCheck[] {
  return endpoint === "livez" ? checks.filter((check) => check.kind === "live") : checks;
}

function resultOf(check: HealthCheck, { withholdReasons }: HealthQuestion): HealthResult {
  const { ok, message, warning, errorId } = runCheck(check);
  if (withholdReasons) return { ok, message: "reason withheld" };
  const shown = (text: string) => (errorId === undefined ? oneLine(text) : `${oneLine(text)} [${errorId}]`);
  return { ok, message: shown(message), ...(warning ? { warning: shown(warning) } : {}) };
}

/** Runs a check. A check that throws has failed. */
export function runCheck(check: HealthCheck): HealthResult {
  try {
    return check.check();
  } catch (error) {
    return { ok: false, message: messageOf(error), errorId: errorIdOf(error) };
  }
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").slice(0, LONGEST_MESSAGE);
}
