import type { PodExplanation } from "../../eviction/index.ts";
import { askAgent } from "../agent-client.ts";
import type { Output } from "../output.ts";
import { plainJson } from "../plain-text.ts";
import { explanationPage } from "./explanation-page.ts";

export interface ExplainOptions {
  /** "host:port" of the agent's status server. */
  server: string;
  format: "text" | "json";
}

/** `nodekeeper explain pod <namespace>/<name>` */
export async function explainPodCommand(
  pod: string,
  { server, format }: ExplainOptions,
  output: Output,
): Promise<void> {
  const path = `/api/v1/eviction/explain?pod=${encodeURIComponent(pod)}`;
  const explanation = await askAgent<PodExplanation>(server, path);
  if (format === "json") output.write(`${plainJson(explanation, 2)}\n`);
  else output.write(explanationPage(explanation, output));
}
