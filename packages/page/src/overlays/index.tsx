import type { Exports } from "../export/exports.ts";
import type { Live } from "../live.ts";
import { nodeNow } from "../node-clock.ts";
import { ExportList } from "./export.tsx";
import { Keys } from "./keys.tsx";
import { Overlay } from "./overlay.tsx";
import { Search } from "./search.tsx";

const titles = { search: "Search", keys: "Keys", export: "Export" } as const;
export type OverlayName = keyof typeof titles;

interface Props {
  name: OverlayName;
  live: Live;
  /** Title of the current view, and its tables. */
  view: string;
  exports: Exports;
  onClose(): void;
}

/** What is open above the view. */
export function Overlays({ name, live, view, exports, onClose }: Props) {
  const { connection, node } = live;
  const about = () => ({
    node: node?.nodeName ?? "",
    view,
    address: location.href,
    at: connection.state === "lost" ? connection.at : nodeNow(),
  });
  return (
    <Overlay title={titles[name]} onClose={onClose}>
      {name === "search" && <Search live={live} />}
      {name === "keys" && <Keys />}
      {name === "export" && <ExportList tables={exports} about={about} />}
    </Overlay>
  );
}
