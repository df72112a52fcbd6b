// node:fs as processes of the simulation see it: files are real, in a directory of the world; a process that was killed
// changes nothing, and watches are told by the scheduler.
import * as real from "node:fs";
import { promisify } from "node:util";
import { processIfAny } from "../process.ts";
import { mustBeWritable, mustHaveSpace } from "./disk-errors.ts";
import { changed } from "./inotify.ts";
import { later } from "./later.ts";
import { procFile } from "./proc.ts";

export * from "node:fs";
export { watch } from "./inotify.ts";

type Call = (...args: never[]) => unknown;

function changing<F extends Call>(call: F, event: "rename" | "change", ...at: number[]): F {
  const places = at.length > 0 ? at : [0];
  return ((...args: unknown[]) => {
    processIfAny()?.edge();
    const files = places.map((place) => args[place]);
    for (const file of files) if (writes(call, file, args[1])) mustBeWritable(call.name, file);
    if (needsSpace(call, args[0])) mustHaveSpace("write", args[0]);
    const result = (call as unknown as (...all: unknown[]) => unknown)(...args);
    if ((call as unknown) === real.writeFileSync) stamp(args[0]);
    for (const file of files) if (typeof file === "string") changed(file, event);
    return result;
  }) as unknown as F;
}

// The kernel's time is not that of the world.
function stamp(file: unknown): void {
  const seconds = (processIfAny()?.clock.now() ?? 0) / 1_000;
  if (typeof file === "string" && seconds > 0) real.utimesSync(file, seconds, seconds);
}

/** Returns whether a call would change the file system: not if it only reads, or removes what does not exist. */
function writes(call: Call, file: unknown, flags: unknown): boolean {
  if ((call as unknown) === real.openSync) return typeof flags === "string" && flags !== "r";
  return (call as unknown) !== real.rmSync || real.existsSync(file as string);
}

/** Returns whether a call needs a new block. `writeSync` changes a file in place, unless it is empty. */
function needsSpace(call: Call, file: unknown): boolean {
  if ((call as unknown) === real.writeSync) return real.fstatSync(file as number).size === 0;
  return (call as unknown) === real.writeFileSync;
}

export const chmodSync = changing(real.chmodSync, "change");
export const linkSync = changing(real.linkSync, "rename", 1);
export const renameSync = changing(real.renameSync, "rename", 0, 1);
export const rmSync = changing(real.rmSync, "rename");
export const symlinkSync = changing(real.symlinkSync, "rename", 1);
export const unlinkSync = changing(real.unlinkSync, "rename");
export const utimesSync = changing(real.utimesSync, "change");
export const writeFileSync = changing(real.writeFileSync, "rename");
export const writeSync = changing(real.writeSync, "change");
export const openSync = changing(real.openSync, "change");
export const copyFileSync = changing(real.copyFileSync, "rename", 1);

export const mkdirSync = ((path: string, options?: real.MakeDirectoryOptions) => {
  processIfAny()?.edge();
  const isNew = !real.existsSync(path);
  if (isNew) mustBeWritable("mkdir", path);
  const made = real.mkdirSync(path, options);
  if (isNew) changed(path, "rename");
  return made;
}) as typeof real.mkdirSync;

export const readFileSync = ((path: string, options?: BufferEncoding) => {
  processIfAny()?.edge();
  return procFile(path) ?? (real.readFileSync as (...all: unknown[]) => string)(path, options);
}) as typeof real.readFileSync;

// Its result would arrive whenever a thread of the kernel is done. The agent only calls it promisified.
export const read = Object.assign(
  () => {
    throw new Error("fs.read is simulated only as promisify(read)");
  },
  {
    [promisify.custom]: (
      fd: number,
      buffer: NodeJS.ArrayBufferView,
      ...rest: [number, number, number | null]
    ) => later(() => ({ bytesRead: real.readSync(fd, buffer, ...rest), buffer })),
  },
);
