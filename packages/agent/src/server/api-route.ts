import { operations, type Parameters, type ParameterValues, readParameters } from "@nodekeeper/api/http";
import type { ApiAnswers, ApiPath, Frozen } from "@nodekeeper/api/openapi";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { JsonRoute } from "./api.ts";

/** Query parameters by path. */
export type ApiQueries = { [Path in ApiPath]: ParameterValues<(typeof operations)[Path]["parameters"]> };

type Answer<Path extends ApiPath> = Frozen<ApiAnswers[Path]>;

/** Routes for the paths of the API contract that are disabled. They respond 404 with the setting that enables them. */
export function unservedRoutes(served: ReadonlySet<string>): JsonRoute[] {
  const all = Object.entries<{ summary: string; setting?: string }>(operations);
  return all.flatMap(([path, { summary, setting }]) => {
    if (served.has(path)) return [];
    const handle = () => {
      throw new NodekeeperError("notFound", `${path} is not served: ${setting ?? "its part"} is off`);
    };
    return [{ path, summary, handle }];
  });
}

/** Returns the route for a path of the API contract: parses its query parameters and types its response. */
export function apiRoute<Path extends ApiPath>(
  path: Path,
  handle: (query: ApiQueries[Path], signal: AbortSignal) => Promise<Answer<Path>> | Answer<Path>,
): JsonRoute {
  const { summary, parameters }: { summary: string; parameters: Parameters } = operations[path];
  return {
    path,
    summary,
    handle: (query, signal) => handle(readParameters(parameters, query) as ApiQueries[Path], signal),
  };
}

/** The route of the OpenAPI document. The schemas take 0.3 MB, so they are loaded on the first request. */
export function documentRoute(version: string): JsonRoute {
  return apiRoute("openapi.json", async () => {
    const { openApiDocument } = await import("@nodekeeper/api/openapi");
    return openApiDocument(version);
  });
}

/** Returns a page of items in the order of their keys, and the `continue` parameter of the next page. */
export function pageAfter<Item extends { key: string }>(
  items: readonly Item[],
  after: string,
  limit: number,
) {
  const rest = items.filter(({ key }) => key > after).sort((a, b) => (a.key < b.key ? -1 : 1));
  const page = rest.slice(0, limit);
  return { page, next: rest.length > page.length ? { continue: page.at(-1)!.key } : {} };
}
