// node:fs/promises: the calls of `fs.ts`, whose results arrive in a later event.
import { Readable } from "node:stream";
import * as fs from "./fs.ts";
import { later } from "./later.ts";

export const { constants } = fs;

function promised<Args extends unknown[], T>(call: (...args: Args) => T): (...args: Args) => Promise<T> {
  return (...args) => later(() => call(...args));
}

// biome-ignore lint/suspicious/noExplicitAny: overloads of node:fs
type Any = (...args: any[]) => any;

export const access = promised(fs.accessSync as Any);
export const chmod = promised(fs.chmodSync as Any);
export const copyFile = promised(fs.copyFileSync as Any);
export const link = promised(fs.linkSync as Any);
export const lstat = promised(fs.lstatSync as Any);
export const mkdir = promised(fs.mkdirSync as Any);
export const mkdtemp = promised(fs.mkdtempSync as Any);
export const readFile = promised(fs.readFileSync as Any);
export const readdir = promised(fs.readdirSync as Any);
export const readlink = promised(fs.readlinkSync as Any);
export const realpath = promised(fs.realpathSync as Any);
export const rename = promised(fs.renameSync as Any);
export const rm = promised(fs.rmSync as Any);
export const rmdir = promised(fs.rmdirSync as Any);
export const stat = promised(fs.statSync as Any);
export const statfs = promised(fs.statfsSync as Any);
export const symlink = promised(fs.symlinkSync as Any);
export const unlink = promised(fs.unlinkSync as Any);
export const utimes = promised(fs.utimesSync as Any);
export const writeFile = promised(fs.writeFileSync as Any);

export async function opendir(path: string): Promise<AsyncIterable<fs.Dirent>> {
  const entries = await later(() => fs.readdirSync(path, { withFileTypes: true }));
  return Object.assign(Readable.from(entries), { close: async () => {} });
}

class FileHandle {
  readonly fd: number;

  constructor(fd: number) {
    this.fd = fd;
  }

  read(buffer: NodeJS.ArrayBufferView, offset = 0, length = buffer.byteLength - offset, at?: number | null) {
    return later(() => ({ bytesRead: fs.readSync(this.fd, buffer, offset, length, at ?? null), buffer }));
  }

  readFile(options?: BufferEncoding) {
    return later(() => (fs.readFileSync as Any)(this.fd, options));
  }

  writeFile(data: string | NodeJS.ArrayBufferView) {
    return later(() => fs.writeFileSync(this.fd, data));
  }

  stat(options?: { bigint?: boolean }) {
    return later(() => (fs.fstatSync as Any)(this.fd, options));
  }

  sync() {
    return later(() => fs.fsyncSync(this.fd));
  }

  close() {
    return later(() => fs.closeSync(this.fd));
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }
}

export async function open(path: string, flags?: string | number, mode?: number): Promise<FileHandle> {
  return new FileHandle(await later(() => fs.openSync(path, flags ?? "r", mode)));
}
