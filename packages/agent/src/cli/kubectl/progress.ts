/** Shows how many agents have answered, in one line on standard error. Shown only on a terminal. */
export class Progress implements Disposable {
  readonly #total: number;
  readonly #isShown: boolean;
  #answered = 0;
  #failed = 0;

  constructor(total: number) {
    this.#total = total;
    this.#isShown = process.stderr.isTTY === true && total > 1;
    this.#show();
  }

  add(hasAnswered: boolean): void {
    if (hasAnswered) this.#answered++;
    else this.#failed++;
    this.#show();
  }

  [Symbol.dispose](): void {
    if (this.#isShown) process.stderr.write("\r\x1b[2K");
  }

  #show(): void {
    if (!this.#isShown) return;
    const failed = this.#failed > 0 ? `, ${this.#failed} without an answer` : "";
    process.stderr.write(`\r\x1b[2K${this.#answered} of ${this.#total} agents have answered${failed}`);
  }
}
