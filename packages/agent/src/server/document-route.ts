import type { JsonRoute } from "./api.ts";
import { apiRoute } from "./api-route.ts";

/** The route of the OpenAPI document. The schemas take 0.3 MB: they are loaded when it is first asked for. */
export function documentRoute(version: string): JsonRoute {
  return apiRoute("openapi.json", async () => {
    const { openApiDocument } = await import("./contract/openapi.ts");
    return openApiDocument(version);
  });
}
