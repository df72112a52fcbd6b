import type { JsonRoute } from "./api.ts";
import { apiRoute } from "./api-route.ts";

/** The route of the OpenAPI document. The schemas take 0.3 MB, so they are loaded on the first request. */
export function documentRoute(version: string): JsonRoute {
  return apiRoute("openapi.json", async () => {
    const { openApiDocument } = await import("@nodekeeper/api/openapi");
    return openApiDocument(version);
  });
}
