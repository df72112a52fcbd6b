import { until } from "@nodekeeper/testing/until";
import type { ApiObject } from "./admin-client.ts";
import type { ForegroundCommand } from "./kubectl-plugin.ts";

/** The page of all nodes, as a browser has it that opened the printed link. */
export interface FleetPage {
  /** With the secret path. */
  address: string;
  /** Gets the JSON response of a path below the page. */
  get(path: string): Promise<ApiObject>;
}

/** Opens the link that `kubectl nodekeeper page` printed, once it is printed. */
export async function openFleetPage({ output }: Pick<ForegroundCommand, "output">): Promise<FleetPage> {
  const printed = () => URL.parse(/http:\/\/\S+#token=\S+/.exec(output())?.[0] ?? "");
  const { origin, hash } = await until("the link is printed", printed, { explain: output });
  const session = await fetch(`${origin}/session`, { method: "POST", body: hash.replace("#token=", "") });
  const { path } = (await session.json()) as { path: string };
  const address = origin + path;
  return { address, get: async (below) => (await fetch(address + below)).json() as Promise<ApiObject> };
}
