import { type Logger, messageOf } from "@nodekeeper/core/lib";
import { parseContent } from "./content.ts";
import type { Endpoint } from "./endpoint.ts";
import type { KindPolicy } from "./kinds.ts";
import type { ReportingMetrics } from "./metrics.ts";
import { decoded } from "./report-message.ts";

export interface ReadMessageOptions {
  policies: ReadonlyMap<string, KindPolicy>;
  log: Logger;
  metrics: ReportingMetrics;
}

/** Parses the endpoint's last message into its content. Problems are counted, and logged when they are new. */
export function readMessage(endpoint: Endpoint, { policies, log, metrics }: ReadMessageOptions): void {
  const before = endpoint.content;
  try {
    endpoint.content = parseContent(decoded(endpoint.message!), policies, before);
  } catch (error) {
    const message = `failed to decode message: ${messageOf(error)}`;
    endpoint.content = { fields: before.fields, problems: [{ reason: "json", message }] };
  }
  const { problems } = endpoint.content;
  for (const { reason } of problems) metrics.problems.inc({ plugin: endpoint.name, reason });
  const texts = problems.map((problem) => problem.message);
  if (texts.length > 0 && texts.join() !== before.problems.map((problem) => problem.message).join()) {
    log.warn(
      { plugin: endpoint.name, problems: texts.slice(0, 5), count: texts.length },
      "reporter plugin sent invalid fields, which are not published",
    );
  }
}
