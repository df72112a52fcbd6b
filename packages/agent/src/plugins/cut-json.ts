/**
 * A value as JSON, at most `most` characters of it, without its whole text being made: reading stops where that many are
 * written. A text that was cut ends in "…". Bytes are shown by their number, bigints as numbers.
 */
export function cutJson(value: unknown, most: number): string {
  const writer = new Writer(most);
  writer.write(value);
  return writer.text();
}

class Writer {
  readonly #most: number;
  #text = "";

  constructor(most: number) {
    this.#most = most;
  }

  get #isFull(): boolean {
    return this.#text.length > this.#most;
  }

  text(): string {
    return this.#isFull ? `${this.#text.slice(0, this.#most)}…` : this.#text;
  }

  write(value: unknown): void {
    if (typeof value === "string") this.#text += JSON.stringify(value.slice(0, this.#most + 1));
    else if (typeof value === "bigint") this.#text += String(value);
    else if (value instanceof Uint8Array) this.#text += `"${value.length} bytes"`;
    else if (Array.isArray(value)) this.#items(value);
    else if (typeof value === "object" && value !== null) this.#members(value);
    else this.#text += JSON.stringify(value) ?? "null";
  }

  #items(items: readonly unknown[]): void {
    this.#text += "[";
    for (const [at, item] of items.entries()) {
      if (this.#isFull) return;
      if (at > 0) this.#text += ",";
      this.write(item);
    }
    this.#text += "]";
  }

  #members(object: object): void {
    this.#text += "{";
    let isFirst = true;
    for (const [key, member] of Object.entries(object)) {
      if (this.#isFull) return;
      if (member === undefined) continue;
      this.#text += `${isFirst ? "" : ","}${JSON.stringify(key.slice(0, this.#most + 1))}:`;
      isFirst = false;
      this.write(member);
    }
    this.#text += "}";
  }
}
