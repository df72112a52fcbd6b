import { plainText } from "@nodekeeper/api/text";
import { NodekeeperError, systemClock } from "@nodekeeper/core/lib";
import { checkDriver, type Finding, isJsonObject } from "../conformance/index.ts";
import { type Colour, type Output, type PageFormat, paint, printMessage, printValue } from "./output.ts";

export interface ConformanceCommandOptions {
  place: string;
  command?: string;
  idle?: boolean;
  restartCommand?: string;
  prepare: boolean;
  configuration?: string;
  only: readonly string[];
  calls: number;
  nodeName: string;
  format: PageFormat;
}

const MOST_MESSAGE = 1_000;
const MOST_DEVICES = 20;
const colours: Record<Finding["result"], Colour> = { pass: "green", fail: "red", skip: "dim" };

/** `nodekeeper conformance driver`. Returns whether no check failed, and no device was left prepared. */
export async function conformanceCommand(
  {
    format,
    prepare,
    command,
    restartCommand,
    configuration,
    idle = false,
    ...rest
  }: ConformanceCommandOptions,
  output: Output,
  signal: AbortSignal,
): Promise<boolean> {
  if (command !== undefined && restartCommand !== undefined)
    throw new NodekeeperError("invalid", "--command and --restart-command exclude each other");
  if (configuration !== undefined && !isJsonObject(configuration))
    throw new NodekeeperError("invalid", "--configuration must be a JSON object");
  let isClean = true;
  const onLeftPrepared = (devices: readonly string[], reason: string) => {
    isClean = false;
    const named = devices.slice(0, MOST_DEVICES).join(", ");
    printMessage(`the driver may still have prepared ${named}: ${reason}`);
  };
  const options = {
    ...rest,
    command,
    restartCommand,
    configuration,
    idle,
    prepares: prepare,
    onLeftPrepared,
    clock: systemClock,
  };
  const checks: Finding[] = [];
  for await (const finding of checkDriver(options, signal)) {
    checks.push(finding);
    if (format === "text") output.write(line(finding, output));
  }
  const countOf = (wanted: Finding["result"]) => checks.filter(({ result }) => result === wanted).length;
  const summary = { passed: countOf("pass"), failed: countOf("fail"), skipped: countOf("skip") };
  if (format === "text")
    output.write(
      `\n${checks.length} checks: ${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped\n`,
    );
  else printValue(output, format, { ...summary, checks });
  return summary.failed === 0 && isClean;
}

function line({ rule, result, ms, message, contract, source }: Finding, output: Output): string {
  const heading = `${paint(output, colours[result], result)}  ${rule.padEnd(24)}${`${Math.round(ms)} ms`.padStart(9)}`;
  const shown = plainText(message, MOST_MESSAGE);
  const text = result === "pass" ? `${contract}${shown && `: ${shown}`}` : `${shown}. Contract: ${contract}`;
  return `${heading}  ${text} [${source}]\n`;
}
