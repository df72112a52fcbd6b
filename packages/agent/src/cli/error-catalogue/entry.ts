import type { ErrorId } from "@nodekeeper/core/lib";

/** What an operator can do about one error. Plain sentences in Markdown. */
export interface CatalogueEntry {
  /** What happened: a headline without a full stop. */
  title: string;
  /** Why it happens; the usual cause first. */
  cause: string;
  /** What to do about it. */
  remedy: string;
}

/** Entries by id, sorted. */
export type CatalogueEntries = Readonly<Record<ErrorId, CatalogueEntry>>;
