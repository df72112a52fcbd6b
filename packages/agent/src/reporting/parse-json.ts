import { parseExactly, type StepMeter, type Steps } from "@nodekeeper/core/lib";
import { checkDepth, checkMembers, type Json, type JsonObject, type Place } from "./json.ts";

// Size of one JSON.parse call. It takes a few milliseconds even if all values are integers beyond 2^53.
const BYTES_AT_ONCE = 32 * 1024;
// The meter counts one unit per 32 bytes, so that parsing BYTES_AT_ONCE is one step.
const UNIT_BITS = 5;

// A byte order mark is skipped at the start of the text and is an error anywhere else.
const ofWhole = new TextDecoder("utf-8", { fatal: true });
const ofPart = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Parses UTF-8 like `parseExactly`, in steps: the members of large objects and lists are parsed a few at a time. Also
 * throws if the bytes are not UTF-8, or if a large value is nested deeper or has more members in one object than
 * `normalizing` accepts.
 * @param bytesAtOnce bytes per call of JSON.parse; a longer string is passed in one piece
 */
export function* parsingExactly(
  bytes: Uint8Array,
  meter: StepMeter,
  bytesAtOnce = BYTES_AT_ONCE,
): Steps<Json> {
  if (bytes.length > bytesAtOnce) {
    const start = afterBlanks(bytes, hasByteOrderMark(bytes) ? 3 : 0);
    if (isOpening(bytes[start])) return yield* new LargeValue(bytes, start, bytesAtOnce).parsing(meter);
  }
  const value = parseExactly(ofWhole.decode(bytes)) as Json;
  if (meter.spend(bytes.length >> UNIT_BITS)) yield;
  return value;
}

/** An object or list that is still open. Positions are byte offsets. */
class Level {
  isList = false;
  /** Position after the opening bracket. */
  openAt = 0;
  /** Position after the bracket or comma that precedes the current member. */
  memberAt = 0;
  /** Position of the colon after the current member's key. -1 until it is reached. */
  colonAt = -1;
  /** Members before this position are in `items` or `members`. */
  doneTo = 0;
  items: Json[] = [];
  /** Without a prototype, so that `__proto__` is an ordinary key. */
  members: JsonObject = {};
  memberCount = 0;
  /** Key of the member that is built as a separate level. */
  key = "";
  /**
   * Whether the current member was built as a separate level and is complete. A comma or closing bracket must follow.
   */
  isMemberDone = false;
}

/**
 * Finds the members of large containers in one pass over the bytes. A container is built here only if it crosses the
 * end of a chunk. JSON.parse parses all others together with their neighbors. Every text passed to JSON.parse has
 * balanced brackets; JSON.parse checks the rest of the syntax.
 */
class LargeValue {
  readonly #bytes: Uint8Array;
  readonly #bytesAtOnce: number;
  /** Reused. Only levels up to `#depth` are open. */
  readonly #levels: Level[] = [];
  #depth = -1;
  /** Index of the innermost level that is built here. All levels around it are built too. */
  #built = -1;
  #at: number;
  /** Bytes parsed since the last step. */
  #parsed = 0;
  #whole: Json | undefined;

  constructor(bytes: Uint8Array, start: number, bytesAtOnce: number) {
    this.#bytes = bytes;
    this.#at = start;
    this.#bytesAtOnce = bytesAtOnce;
  }

  *parsing(meter: StepMeter): Steps<Json> {
    const bytes = this.#bytes;
    for (; this.#at < bytes.length; this.#at++) {
      const byte = bytes[this.#at]!;
      if (byte === QUOTE) this.#skipString();
      else if (byte === COLON) this.#endKey();
      else if (byte === COMMA) this.#endMember();
      else if (isOpening(byte)) this.#open(byte === OPEN_LIST);
      else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) this.#close(byte === CLOSE_LIST);
      if (this.#whole !== undefined) break;
      if (this.#parsed === 0) continue;
      if (meter.spend(this.#parsed >> UNIT_BITS)) yield;
      this.#parsed = 0;
    }
    if (this.#whole === undefined) throw new SyntaxError("unexpected end");
    this.#expectBlank(this.#at + 1, bytes.length);
    return this.#whole;
  }

  get #level(): Level {
    return this.#levels[this.#depth]!;
  }

  #skipString(): void {
    const bytes = this.#bytes;
    let at = this.#at + 1;
    while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
    this.#at = at;
  }

  #endKey(): void {
    if (this.#level.colonAt < 0) this.#level.colonAt = this.#at;
  }

  #open(isList: boolean): void {
    if (this.#depth >= 0 && this.#level.isMemberDone) throw unexpectedAt(this.#at);
    this.#depth++;
    checkDepth(this.#depth, this.#place());
    this.#levels[this.#depth] ??= new Level();
    const level = this.#level;
    level.isList = isList;
    level.openAt = this.#at + 1;
    level.isMemberDone = false;
    startMember(level, this.#at + 1);
    if (this.#depth === 0) this.#build();
  }

  #endMember(): void {
    const level = this.#level;
    if (level.isMemberDone || this.#at - this.#levels[this.#built]!.doneTo >= this.#bytesAtOnce) {
      while (this.#built < this.#depth) this.#build();
      this.#parse(level, this.#at);
      level.doneTo = this.#at + 1;
    }
    startMember(level, this.#at + 1);
  }

  #close(isList: boolean): void {
    const level = this.#level;
    if (this.#depth === this.#built) {
      if (isList !== level.isList) throw unexpectedAt(this.#at);
      const isEmpty = level.doneTo === level.openAt && this.#isBlank(level.openAt, this.#at);
      if (!isEmpty) this.#parse(level, this.#at);
      this.#built--;
      this.#depth--;
      this.#add(isList ? level.items : level.members);
      level.items = [];
      level.members = {};
      return;
    }
    this.#depth--;
  }

  /** Builds the next level. First parses the preceding members of the enclosing level. */
  #build(): void {
    const level = this.#levels[this.#built + 1]!;
    if (this.#built >= 0) {
      const around = this.#levels[this.#built]!;
      if (around.memberAt > around.doneTo) this.#parse(around, around.memberAt - 1);
      around.doneTo = around.memberAt;
      this.#readKey(around, level.openAt - 1);
    }
    this.#built++;
    level.doneTo = level.openAt;
    level.items = [];
    level.members = Object.create(null);
    level.memberCount = 0;
  }

  /** Reads the key of the current member, whose value starts at `valueAt`. */
  #readKey(level: Level, valueAt: number): void {
    if (level.isList) {
      this.#expectBlank(level.memberAt, valueAt);
      return;
    }
    if (level.colonAt < 0) throw unexpectedAt(valueAt);
    this.#expectBlank(level.colonAt + 1, valueAt);
    const key: unknown = JSON.parse(ofPart.decode(this.#bytes.subarray(level.memberAt, level.colonAt)));
    if (typeof key !== "string") throw unexpectedAt(level.memberAt);
    level.key = key;
  }

  /** Parses the members of a level from `doneTo` to `end`. There must be at least one. */
  #parse(level: Level, end: number): void {
    this.#parsed += end - level.doneTo;
    if (level.isMemberDone) {
      this.#expectBlank(level.doneTo, end);
      level.isMemberDone = false;
      return;
    }
    const text = ofPart.decode(this.#bytes.subarray(level.doneTo, end));
    if (level.isList) {
      const items = parseExactly(`[${text}]`) as Json[];
      if (items.length === 0) throw unexpectedAt(end);
      for (const item of items) level.items.push(item);
      return;
    }
    const members = parseExactly(`{${text}}`) as JsonObject;
    const keys = Object.keys(members);
    if (keys.length === 0) throw unexpectedAt(end);
    level.memberCount += keys.length;
    checkMembers(level.memberCount, this.#place());
    for (const key of keys) level.members[key] = members[key]!;
  }

  /** Adds a built value to the enclosing level. */
  #add(value: Json): void {
    if (this.#depth < 0) {
      this.#whole = value;
      return;
    }
    const around = this.#level;
    around.doneTo = this.#at + 1;
    around.isMemberDone = true;
    if (around.isList) {
      around.items.push(value);
      return;
    }
    checkMembers(++around.memberCount, this.#place());
    around.members[around.key] = value;
  }

  /** Returns the path of the innermost level that is built. */
  #place(): Place | undefined {
    let place: Place | undefined;
    for (const level of this.#levels.slice(0, Math.max(this.#built, 0)))
      place = { key: level.isList ? level.items.length : level.key, within: place };
    return place;
  }

  #isBlank(from: number, to: number): boolean {
    return afterBlanks(this.#bytes, from) >= to;
  }

  #expectBlank(from: number, to: number): void {
    if (!this.#isBlank(from, to)) throw unexpectedAt(afterBlanks(this.#bytes, from));
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

function isOpening(byte: number | undefined): boolean {
  return byte === OPEN_LIST || byte === OPEN_OBJECT;
}

function startMember(level: Level, at: number): void {
  level.memberAt = at;
  level.colonAt = -1;
}

function hasByteOrderMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

/** Returns the first position from `at` on that is not JSON white space. */
function afterBlanks(bytes: Uint8Array, at: number): number {
  let next = at;
  while (bytes[next] === 0x20 || bytes[next] === 0x09 || bytes[next] === 0x0a || bytes[next] === 0x0d) next++;
  return next;
}

function unexpectedAt(at: number): SyntaxError {
  return new SyntaxError(`unexpected character at byte ${at}`);
}
