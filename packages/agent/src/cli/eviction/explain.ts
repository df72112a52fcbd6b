import type { NodeExplanation, PodExplanation } from "@nodekeeper/api/records";
import { type Output, type PageFormat, printValue } from "../output.ts";
import { explanationPage } from "./explanation-page.ts";
import { nodePage } from "./node-page.ts";

/** `nodekeeper explain pod` */
export function printPodExplanation(explanation: PodExplanation, format: PageFormat, output: Output): void {
  if (format === "text") output.write(explanationPage(explanation, output));
  else printValue(output, format, explanation);
}

/** `nodekeeper explain node` */
export function printNodeExplanation(explanation: NodeExplanation, format: PageFormat, output: Output): void {
  if (format === "text") output.write(nodePage(explanation, output));
  else printValue(output, format, explanation);
}
