// node:fs as processes of the simulation see it: files are real, in a directory of the world; a process that was killed
// changes nothing, and watches are told by the scheduler.
import * as real from "node:fs";
import { processIfAny } from "../process.ts";
import { changed } from "./inotify.ts";
import { procFile } from "./proc.ts";

export * from "node:fs";
export { watch } from "./inotify.ts";

type Call = (...args: never[]) => unknown;

function changing<F extends Call>(call: F, event: "rename" | "change", ...paths: number[]): F {
  return ((...args: unknown[]) => {
    processIfAny()?.edge();
    const result = (call as unknown as (...all: unknown[]) => unknown)(...args);
    for (const at of paths.length > 0 ? paths : [0]) {
      if (typeof args[at] === "string") changed(args[at], event);
    }
    return result;
  }) as unknown as F;
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
  const made = real.mkdirSync(path, options);
  if (isNew) changed(path, "rename");
  return made;
}) as typeof real.mkdirSync;

export const readFileSync = ((path: string, options?: BufferEncoding) => {
  processIfAny()?.edge();
  return procFile(path) ?? (real.readFileSync as (...all: unknown[]) => string)(path, options);
}) as typeof real.readFileSync;
