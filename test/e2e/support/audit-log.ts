import { existsSync, readFileSync } from "node:fs";

/** A request as the API server's audit log tells it: https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/ */
export interface AuditedRequest {
  auditID: string;
  stage: string;
  verb: string;
  requestURI: string;
  user: { username: string; extra?: Record<string, string[]> };
  userAgent?: string;
  objectRef?: { resource?: string; subresource?: string; name?: string; apiGroup?: string };
  responseStatus?: { code?: number };
  requestReceivedTimestamp: string;
}

export interface RequestFilter {
  user?: string;
  /** Wall milliseconds. */
  since?: number;
  until?: number;
}

/** What the API server was asked, read from its audit log. */
export class AuditLog {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Requests in the order they came, each once, with the last that is known of it. */
  requests({ user, since = 0, until = Number.POSITIVE_INFINITY }: RequestFilter = {}): AuditedRequest[] {
    if (!existsSync(this.path)) return [];
    const byId = new Map<string, AuditedRequest>();
    for (const line of readFileSync(this.path, "utf8").split("\n")) {
      const request = parse(line);
      if (!request || (user !== undefined && request.user.username !== user)) continue;
      const at = Date.parse(request.requestReceivedTimestamp);
      if (at >= since && at <= until) byId.set(request.auditID, request);
    }
    return [...byId.values()].sort((a, b) =>
      a.requestReceivedTimestamp.localeCompare(b.requestReceivedTimestamp),
    );
  }
}

/** "patch customnoderesources/status": a request as a right is named. */
export function rightOf({ verb, objectRef }: AuditedRequest): string {
  const { resource = "", subresource } = objectRef ?? {};
  return `${verb} ${resource}${subresource ? `/${subresource}` : ""}`;
}

/** How often each right was used, for messages and comparisons. */
export function tally(requests: readonly AuditedRequest[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const request of requests) {
    const right = request.objectRef
      ? rightOf(request)
      : `${request.verb} ${request.requestURI.split("?")[0]}`;
    counts[right] = (counts[right] ?? 0) + 1;
  }
  return counts;
}

// A killed server leaves half a line.
function parse(line: string): AuditedRequest | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
