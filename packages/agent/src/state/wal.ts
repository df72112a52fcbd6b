// Format of the file and its write-ahead log: https://www.sqlite.org/fileformat.html, sections 1.3 and 4.
const MAGIC = 0x377f0682;
const LOG_HEADER = 32;
const FRAME_HEADER = 24;
// Offsets of two bytes in the file header: 2 for a write-ahead log, 1 for a rollback journal.
const [WRITE_VERSION, READ_VERSION] = [18, 19];

/**
 * Returns the contents of a database including all transactions committed to its write-ahead log, as a
 * database without such a log. Writes nothing, so it works on a read-only or full disk, on which SQLite
 * cannot open the two files. Like SQLite, ignores the log from the first frame with a wrong salt or checksum,
 * and a transaction without a commit frame.
 * @param file is not changed
 * @param log empty if there is none
 */
export function withLog(file: Uint8Array, log: Uint8Array): Uint8Array {
  const { frames, pageSize, pages } = committed(log);
  const size = frames.length > 0 ? pages * pageSize : file.length;
  const result = new Uint8Array(size);
  result.set(file.subarray(0, size));
  for (const { page, data } of frames) {
    // A later transaction may have truncated this page.
    if (page <= pages) result.set(data, (page - 1) * pageSize);
  }
  if (result.length > READ_VERSION) {
    result[WRITE_VERSION] = 1;
    result[READ_VERSION] = 1;
  }
  return result;
}

interface Frame {
  /** Starts at 1. */
  page: number;
  data: Uint8Array;
}

function committed(log: Uint8Array): { frames: Frame[]; pageSize: number; pages: number } {
  const none = { frames: [], pageSize: 0, pages: 0 };
  if (log.length < LOG_HEADER) return none;
  const view = new DataView(log.buffer, log.byteOffset, log.length);
  const magic = view.getUint32(0);
  const pageSize = view.getUint32(8);
  if (magic >>> 1 !== MAGIC >>> 1 || !isPageSize(pageSize)) return none;
  const sum = new Checksum(view, (magic & 1) === 0);
  sum.add(0, LOG_HEADER - 8);
  if (!sum.isAt(LOG_HEADER - 8)) return none;
  const frames: Frame[] = [];
  let [count, pages] = [0, 0];
  const frameSize = FRAME_HEADER + pageSize;
  for (let at = LOG_HEADER; at + frameSize <= log.length; at += frameSize) {
    const isOfLog = view.getBigUint64(at + 8) === view.getBigUint64(16);
    sum.add(at, 8);
    sum.add(at + FRAME_HEADER, pageSize);
    const page = view.getUint32(at);
    if (!isOfLog || page === 0 || !sum.isAt(at + 16)) break;
    frames.push({ page, data: log.subarray(at + FRAME_HEADER, at + frameSize) });
    const pagesAfterCommit = view.getUint32(at + 4);
    if (pagesAfterCommit > 0) [count, pages] = [frames.length, pagesAfterCommit];
  }
  return { frames: frames.slice(0, count), pageSize, pages };
}

function isPageSize(bytes: number): boolean {
  return bytes >= 512 && bytes <= 65_536 && (bytes & (bytes - 1)) === 0;
}

/** The running checksum of a write-ahead log. */
class Checksum {
  readonly #view: DataView;
  readonly #isLittleEndian: boolean;
  #first = 0;
  #second = 0;

  constructor(view: DataView, isLittleEndian: boolean) {
    this.#view = view;
    this.#isLittleEndian = isLittleEndian;
  }

  /** Adds bytes. Their number must be a multiple of 8. */
  add(from: number, length: number): void {
    for (let at = from; at < from + length; at += 8) {
      this.#first = (this.#first + this.#view.getUint32(at, this.#isLittleEndian) + this.#second) >>> 0;
      this.#second = (this.#second + this.#view.getUint32(at + 4, this.#isLittleEndian) + this.#first) >>> 0;
    }
  }

  /** Returns whether the checksum equals the stored one. */
  isAt(at: number): boolean {
    return this.#view.getUint32(at) === this.#first && this.#view.getUint32(at + 4) === this.#second;
  }
}
