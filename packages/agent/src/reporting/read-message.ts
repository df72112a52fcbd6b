import { ReportRefused } from "@nodekeeper/api/errors";
import { messageOf, type Steps } from "@nodekeeper/core/lib";
import { type PluginContent, parsingContent } from "./content.ts";
import type { ReportingContext } from "./context.ts";
import type { Endpoint } from "./endpoint.ts";
import { decoded } from "./report-message.ts";

/** Parses the endpoint's last message into its content. Problems are counted, and logged if they changed. */
export function* readingMessage(
  endpoint: Endpoint,
  { policies, log, metrics }: Pick<ReportingContext, "policies" | "log" | "metrics">,
): Steps<void> {
  const message = endpoint.message!;
  const before = endpoint.content;
  let content: PluginContent;
  try {
    content = yield* parsingContent(decoded(message), policies, before);
  } catch (error) {
    const problem = `failed to decode message: ${messageOf(error)}`;
    content = { fields: before.fields, problems: [{ reason: "json", message: problem }] };
  }
  endpoint.content = content;
  endpoint.read = message;
  const { problems } = content;
  for (const { reason } of problems) metrics.problems.inc({ plugin: endpoint.name, reason });
  const texts = problems.map((problem) => problem.message);
  if (texts.length > 0 && texts.join() !== before.problems.map((problem) => problem.message).join()) {
    log.warn(
      { errorId: ReportRefused.id, plugin: endpoint.name, problems: texts.slice(0, 5), count: texts.length },
      "reporter plugin sent invalid fields, which are not published",
    );
  }
}
