import { counted } from "@nodekeeper/api/wording";
import { useState } from "preact/hooks";
import { type About, csvFile, type ExportedFile, jsonFile } from "../export/document.ts";
import type { Exports } from "../export/exports.ts";
import { shown } from "../text.ts";

interface Props {
  tables: Exports;
  /** Returns what the export is about, at the time of the export. */
  about(): About;
}

/** Saves what the view shows: all of it as JSON, or one of its tables as CSV. */
export function ExportList({ tables, about }: Props) {
  const [saved, setSaved] = useState("");
  const all = [...tables];
  const save = (file: ExportedFile) => {
    saveFile(file);
    setSaved(`Saved as ${file.name}.`);
  };
  return (
    <>
      <h2>Export</h2>
      <p>What the view shows now, under its filters. Times are in UTC.</p>
      {all.length === 0 && <p>The view shows no data yet.</p>}
      <ul class="export">
        {all.length > 0 && (
          <li>
            <b>All of it</b>
            <button type="button" onClick={() => save(jsonFile(about(), [...tables]))}>
              JSON
            </button>
          </li>
        )}
        {all.map((table, at) => (
          <li key={at}>
            <span>
              {shown(table.name, 200)} <small>{counted(table.read().length, "row")}</small>
            </span>
            <button type="button" onClick={() => save(csvFile(about(), table))}>
              CSV<span class="unseen"> of {shown(table.name, 200)}</span>
            </button>
          </li>
        ))}
      </ul>
      <p role="status">{saved}</p>
    </>
  );
}

function saveFile({ name, type, content }: ExportedFile): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  // The browser has begun to save it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
