/** A map of limited size. Above the limit, the least recently set entry is removed. */
export class RecentMap<K, V> extends Map<K, V> {
  readonly #most: number;

  /** @param most maximum number of entries */
  constructor(most: number) {
    super();
    this.#most = most;
  }

  /** Sets an entry, which becomes the most recent one. */
  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#most) this.delete(this.keys().next().value!);
    return this;
  }
}
