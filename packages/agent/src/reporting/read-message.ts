import { ReportRefused } from "@nodekeeper/api/errors";
import { messageOf, type Steps } from "@nodekeeper/core/lib";
import { type PluginContent, parsingContent } from "./content.ts";
import type { ReportingContext } from "./context.ts";
import type { Endpoint } from "./endpoint.ts";
import { decoded } from "./report-message.ts";

/**
 * Returns the content of the endpoint's last message, and the message. If the message can't be parsed, the previous
 * fields are kept. Problems are counted, and logged if they changed.
 */
export function* readingMessage(
  endpoint: Endpoint,
  { policies, log, metrics }: Pick<ReportingContext, "policies" | "log" | "metrics">,
): Steps<Pick<Endpoint, "content" | "read">> {
  const message = endpoint.message!;
  const before = endpoint.content;
  let content: PluginContent;
  try {
    content = yield* parsingContent(decoded(message), policies, before);
  } catch (error) {
    content = { fields: before.fields, problems: [{ reason: "json", message: messageOf(error) }] };
  }
  const { problems } = content;
  for (const { reason } of problems) metrics.problems.inc({ plugin: endpoint.name, reason });
  const texts = problems.map((problem) => problem.message);
  if (texts.length > 0 && texts.join() !== before.problems.map((problem) => problem.message).join()) {
    log.warn(
      { errorId: ReportRefused.id, plugin: endpoint.name, problems: texts.slice(0, 5), count: texts.length },
      "reporter plugin sent invalid fields, which are not published",
    );
  }
  return { content, read: message };
}
