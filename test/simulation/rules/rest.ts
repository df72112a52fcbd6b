import { mapDifferences } from "../../support/map-differences.ts";
import { NODE } from "../world/api-server.ts";
import { request } from "../world/status.ts";
import type { Rule } from "./rule.ts";

const CNRS = "customnoderesources.node.katalyst.kubewharf.io";

export const rest: readonly Rule[] = [
  {
    promise: "After quiet, what plugins last reported is what is published, and nothing else.",
    atRest: ({ api, reporters }) => {
      const cnr = api.store.get(CNRS, NODE) as {
        status?: { resources?: { capacity?: Record<string, string> } };
      };
      const published = cnr?.status?.resources?.capacity ?? {};
      const expected = Object.fromEntries(
        reporters.map(({ name, value }) => [`widgets.example/${name}`, `${value}`]),
      );
      return mapDifferences("capacity", expected, published);
    },
  },
  {
    promise: "A taint is on the Node while its condition is reported, and is removed when it no longer is.",
    atRest: ({ api, evictionPlugins, plan }) => {
      const { spec } = api.store.get("nodes", NODE) as { spec?: { taints?: { key: string }[] } };
      const keys = (spec?.taints ?? [])
        .map(({ key }) => key)
        .filter((key) => key.startsWith("nodekeeper.dev/"));
      const expected = plan.isDryRun
        ? []
        : evictionPlugins
            .filter(({ hasCondition, pressure }) => hasCondition && pressure !== "none")
            .map(({ condition }) => `nodekeeper.dev/${condition.name}`);
      return mapDifferences("taint", asMap(expected), asMap(keys));
    },
  },
  {
    promise: "If all is well, no health check fails.",
    atRest: async (world) => {
      const { status, body } = await request(world, "/readyz?verbose");
      const failed = body.split("\n").filter((line) => line.startsWith("[-]"));
      return status === 200 ? [] : [`/readyz: ${status}: ${failed.join("; ")}`];
    },
  },
  {
    promise: "The agent ends only when it is told to.",
    atRest: ({ agent }) => agent.failures,
  },
];

function asMap(keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(keys.map((key) => [key, "there"]));
}
