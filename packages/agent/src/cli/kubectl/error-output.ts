const MAX_KEPT_LENGTH = 4_000;

// How kubectl's own errors start: k8s.io/kubectl pkg/cmd/util/helpers.go.
const errorStarts = ["error:", "Error ", "Unable to ", "The connection "];

/** What kubectl reported before it failed. */
export interface Failure {
  /** First lines of its errors, each once, in order. */
  errors: readonly string[];
  /** The last line that is not indented, of whatever kind; empty where there is none. */
  last: string;
}

/**
 * What kubectl and the credential plugins that it runs write to standard error, sorted by line:
 * 1. Errors of kubectl, and errors of its log (klog), which mostly are retries, are kept for `take` or `show`.
 * 2. All else is passed on at once, also a line that has not ended, such as a prompt: it waits for its rest only while it
 *    may still become an error.
 * It keeps 4,000 characters of either; what is longer is truncated.
 */
export class ErrorOutput {
  readonly #passOn: (text: string) => void;
  /** The start of a line that may become an error. */
  #rest = "";
  #errors = "";
  #log = "";
  #last = "";
  /** The line that has not ended, with what of it was passed on. */
  #line = "";
  /** Whether a value of several lines of the log has not ended: it is indented with tabs, and " >" ends it. */
  #isInLog = false;

  constructor(passOn: (text: string) => void) {
    this.#passOn = passOn;
  }

  /** Adds what was read, in pieces of any size. */
  add(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop()!;
    for (const line of lines) this.#addLine(`${line}\n`);
    if (this.#rest.length > MAX_KEPT_LENGTH || !this.#mayBeKept(this.#rest)) this.#endLine();
  }

  /** What is known of the failure. Nothing is kept any more. */
  take(): Failure {
    this.#endLine();
    const lines = this.#errors.split("\n").filter((line) => line !== "");
    this.#errors = "";
    this.#log = "";
    return { errors: [...new Set(lines)], last: this.#last };
  }

  /** Passes on what is kept, where it was not an error after all. */
  show(): void {
    this.#endLine();
    const kept = this.#log + this.#errors;
    this.#errors = "";
    this.#log = "";
    if (kept !== "") this.#passOn(kept);
  }

  // What follows counts as a line of its own: a terminal's user ends a prompt.
  #endLine(): void {
    const line = this.#rest;
    this.#rest = "";
    if (line !== "") this.#addLine(line);
  }

  #addLine(line: string): void {
    this.#line = (this.#line + line).slice(0, MAX_KEPT_LENGTH);
    if (/^\S/.test(this.#line)) this.#last = this.#line.trimEnd();
    if (line.endsWith("\n")) this.#line = "";
    if (this.#isLog(line)) this.#log = (this.#log + line).slice(0, MAX_KEPT_LENGTH);
    else if (isError(line)) this.#errors = (this.#errors + line).slice(0, MAX_KEPT_LENGTH);
    else this.#passOn(line);
  }

  #isLog(line: string): boolean {
    const isLog = /^E\d{4} /.test(line) || (this.#isInLog && /^(?:\t| >)/.test(line));
    this.#isInLog = isLog && (line.trimEnd().endsWith("=<") || (this.#isInLog && line.startsWith("\t")));
    return isLog;
  }

  #mayBeKept(start: string): boolean {
    if (this.#isInLog && /^(?:\t| >| $)/.test(start)) return true;
    return (
      /^E(?:\d{0,4}$|\d{4} )/.test(start) ||
      isError(start) ||
      errorStarts.some((all) => all.startsWith(start))
    );
  }
}

function isError(line: string): boolean {
  return errorStarts.some((start) => line.startsWith(start));
}
