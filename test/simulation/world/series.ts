/** A value that changes, with the times of its changes in virtual milliseconds. */
export class Series<T> {
  readonly #values: { at: number; value: T }[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  set(value: T): void {
    this.#values.push({ at: this.#now(), value });
  }

  /** The value that holds now. Undefined before the first one. */
  get last(): T | undefined {
    return this.#values.at(-1)?.value;
  }

  /** Returns the values that held at any time of a period, oldest first. */
  during(from: number, to: number): T[] {
    return this.spans(from, to).map(({ value }) => value);
  }

  /** Returns the same values with the part of the period in which each of them held. */
  spans(from: number, to: number): { from: number; to: number; value: T }[] {
    return this.#values
      .map(({ at, value }, index) => ({ value, from: at, to: this.#values[index + 1]?.at ?? to }))
      .filter((span) => span.from <= to && span.to >= from)
      .map((span) => ({ ...span, from: Math.max(span.from, from), to: Math.min(span.to, to) }));
  }
}
