import type { Catalogue } from "../catalogue/catalogue.ts";
import { methodNotAllowed } from "../status.ts";
import type { Call } from "./call.ts";
import { AGGREGATED, aggregated, coreVersions, groupDocument, groupList, resourceList } from "./discovery.ts";
import { openapiDocument, openapiIndex, openapiV2 } from "./openapi.ts";

// Version of the API server whose behavior this server follows.
const version = {
  major: "1",
  minor: "34",
  gitVersion: "v1.34.0+nodekeeper-dev",
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "none",
  compiler: "none",
  platform: "development",
};

const HEALTH_PATHS = new Set(["/healthz", "/livez", "/readyz"]);

/** Serves non-resource paths: version, health, discovery, OpenAPI. */
export function answerDocument(call: Call, catalogue: Catalogue): void {
  if (call.method !== "GET" && call.method !== "HEAD") throw methodNotAllowed();
  const { pathname } = call;
  if (HEALTH_PATHS.has(pathname)) call.send(200, "ok", "text/plain");
  else if ((pathname === "/api" || pathname === "/apis") && call.accepted.includes(AGGREGATED)) {
    call.json(200, aggregated(catalogue, pathname === "/api"), AGGREGATED);
  } else {
    const document = findDocument(call, catalogue);
    if (document !== undefined) call.json(200, document);
    else call.send(404, "404 page not found\n", "text/plain; charset=utf-8");
  }
}

function findDocument({ pathname, request }: Call, catalogue: Catalogue): unknown {
  switch (pathname) {
    case "/":
      return {
        paths: ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"],
      };
    case "/version":
      return version;
    case "/api":
      return coreVersions(request.headers.host ?? "");
    case "/apis":
      return groupList(catalogue);
    case "/openapi/v2":
      return openapiV2;
    case "/openapi/v3":
      return openapiIndex(catalogue);
  }
  if (pathname.startsWith("/openapi/v3/"))
    return openapiDocument(catalogue, pathname.slice("/openapi/v3/".length));
  const [, root, first, second, ...more] = pathname.split("/");
  if (more.length > 0 || !first) return undefined;
  if (root === "api" && second === undefined) return resourceList(catalogue, "", first);
  if (root !== "apis") return undefined;
  return second === undefined ? groupDocument(catalogue, first) : resourceList(catalogue, first, second);
}
