export { type ArchiveOptions, createArchive } from "./archive.ts";
export { type AccessFiles, readAccess } from "./otlp/access-files.ts";
