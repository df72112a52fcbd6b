import { NodekeeperError } from "@nodekeeper/core/lib";
import type { JsonRoute } from "./api.ts";
import type { answers } from "./contract/answers.ts";
import { operations } from "./contract/operations.ts";
import { type Parameters, type ParameterValues, readParameters } from "./contract/parameters.ts";
import type { Frozen, ValueOf } from "./contract/schema.ts";

type Operations = typeof operations;

/** A path below /api/v1/: "plugins". */
export type ApiPath = keyof Operations;

/** What each path is answered, as a client reads it. */
export type ApiAnswers = { [Path in ApiPath]: ValueOf<(typeof answers)[Path]> };

/** The parameters that each path's query may have. */
export type ApiQueries = { [Path in ApiPath]: ParameterValues<Operations[Path]["parameters"]> };

type Answer<Path extends ApiPath> = Frozen<ApiAnswers[Path]>;

/** Routes for the paths of the contract that no part serves: they answer which setting turns it off. */
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

/** The route of a path of the contract: its parameters are read, and its answer has the contract's type. */
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
