export { type ArchiveOptions, createArchive } from "./archive.ts";
