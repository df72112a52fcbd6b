import { type Clock, NodekeeperError, withDeadline } from "@nodekeeper/core/lib";
import { errorReply, jsonReply, type Reply } from "./reply.ts";

/** A route of the JSON API, at /api/v1/<path>. */
export interface JsonRoute {
  /** Without a leading slash: "plugins", "reporting/conflicts". */
  readonly path: string;
  /** One line for the list of routes. */
  readonly summary: string;
  /** Returns the value to send as JSON. A NodekeeperError is mapped to the HTTP status of its code. */
  handle(query: URLSearchParams, signal: AbortSignal): Promise<unknown> | unknown;
}

export const API_ROOT = "/api/v1";
/** Deadline of a handler, milliseconds. */
export const HANDLER_DEADLINE_MS = 10_000;

/** Returns the routes by path. Throws `invalid` if a path is malformed or duplicated. */
export function indexRoutes(routes: readonly JsonRoute[]): ReadonlyMap<string, JsonRoute> {
  const found = new Map<string, JsonRoute>();
  for (const route of routes) {
    if (!/^[a-z0-9-]+(?:\/[a-z0-9-]+)*(?:\.json)?$/.test(route.path)) {
      throw new NodekeeperError(
        "invalid",
        `route ${JSON.stringify(route.path)} is not a path of lower-case words`,
      );
    }
    if (found.has(route.path)) throw new NodekeeperError("invalid", `two routes have the path ${route.path}`);
    found.set(route.path, route);
  }
  return found;
}

/** Runs a route's handler under its deadline. An error becomes an error response. */
export async function routeReply(
  route: JsonRoute,
  query: URLSearchParams,
  clock: Clock,
  signal: AbortSignal,
): Promise<Reply> {
  try {
    const handle = async (scoped: AbortSignal) => route.handle(query, scoped);
    return jsonReply(
      200,
      await withDeadline(clock, { ms: HANDLER_DEADLINE_MS, name: `route ${route.path}` }, signal, handle),
    );
  } catch (error) {
    return errorReply(error);
  }
}
