import { type Output, printJson } from "../output.ts";
import { explanationPage } from "./explanation-page.ts";
import { nodePage } from "./node-page.ts";
import { openRecords, type RecordPlace } from "./open-records.ts";

export interface ExplainOptions extends RecordPlace {
  format: "text" | "json";
}

/** `nodekeeper explain pod <namespace>/<name>` */
export async function explainPodCommand(
  pod: string,
  { format, ...place }: ExplainOptions,
  output: Output,
): Promise<void> {
  using source = await openRecords(place);
  const explanation = await source.explainPod(pod);
  if (format === "json") printJson(output, explanation, 2);
  else output.write(explanationPage(explanation, output));
}

/** `nodekeeper explain node` */
export async function explainNodeCommand(
  { format, ...place }: ExplainOptions,
  output: Output,
): Promise<void> {
  using source = await openRecords(place);
  const explanation = await source.explainNode();
  if (format === "json") printJson(output, explanation, 2);
  else output.write(nodePage(explanation, output));
}
