const MAX_KEPT_LENGTH = 4_000;

// Prefixes of kubectl's errors: k8s.io/kubectl pkg/cmd/util/helpers.go.
const errorStarts = ["error:", "Error ", "Unable to ", "The connection "];

/** What kubectl printed before it failed. */
export interface Failure {
  /** First lines of its errors, deduplicated, in order. */
  errors: readonly string[];
  /** The last line that is not indented, error or not. Empty if there is none. */
  last: string;
}

/**
 * Classifies, line by line, what kubectl and its credential plugins write to standard error:
 * 1. Errors of kubectl, and errors in its log (klog), most of which are retries, are buffered for `take` or `show`.
 * 2. Everything else is passed on immediately, including incomplete lines such as prompts. An incomplete line is
 *    delayed only while it may still become an error.
 * At most 4,000 characters of each kind are buffered; the rest is dropped.
 */
export class ErrorOutput {
  readonly #passOn: (text: string) => void;
  /** Incomplete line that may become an error. */
  #rest = "";
  #errors = "";
  #log = "";
  #last = "";
  /** The incomplete line, including the part already passed on. */
  #line = "";
  /** Whether inside a multi-line value in the log: its lines are indented with tabs, and " >" ends it. */
  #isInLog = false;

  constructor(passOn: (text: string) => void) {
    this.#passOn = passOn;
  }

  /** Adds text, in chunks of any size. */
  add(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop()!;
    for (const line of lines) this.#addLine(`${line}\n`);
    if (this.#rest.length > MAX_KEPT_LENGTH || !this.#mayBeKept(this.#rest)) this.#endLine();
  }

  /** Returns the failure and clears the buffers. */
  take(): Failure {
    this.#endLine();
    const lines = this.#errors.split("\n").filter((line) => line !== "");
    this.#errors = "";
    this.#log = "";
    return { errors: [...new Set(lines)], last: this.#last };
  }

  /** Passes on the buffered text, if it turned out not to be an error. */
  show(): void {
    this.#endLine();
    const kept = this.#log + this.#errors;
    this.#errors = "";
    this.#log = "";
    if (kept !== "") this.#passOn(kept);
  }

  // Text that follows counts as a new line: on a terminal, the user's input ends the line of a prompt.
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
