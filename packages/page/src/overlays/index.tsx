import type { OverlayName } from "../keys.ts";
import type { Live } from "../live.ts";
import { Keys } from "./keys.tsx";
import { Overlay } from "./overlay.tsx";
import { Search } from "./search.tsx";

interface Props {
  name: OverlayName;
  live: Live;
  onClose(): void;
}

/** What is open above the view. */
export function Overlays({ name, live, onClose }: Props) {
  return name === "search" ? (
    <Overlay title="Search" onClose={onClose}>
      <Search live={live} />
    </Overlay>
  ) : (
    <Overlay title="Keys" onClose={onClose}>
      <Keys />
    </Overlay>
  );
}
