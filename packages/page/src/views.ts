import type { StateTopic } from "@nodekeeper/api/http";
import type { ComponentType } from "preact";
import { lazyView } from "./parts/lazy-view.tsx";
import { withStyles } from "./parts/styles.ts";
import type { ViewProps } from "./view-props.ts";

export interface View {
  /** The first segment of its addresses. */
  readonly name: string;
  readonly title: string;
  readonly Component: ComponentType<ViewProps>;
  /** Stream topics it requires in addition to the base topics: paths of responses. */
  readonly topics: readonly StateTopic[];
}

// Each view is a separate file, loaded when it is opened. So are its styles; those of the first are in
// main.tsx.
const TimelineView = lazyView(async () => (await import("./views/timeline/index.tsx")).TimelineView);
const PodView = lazyView(async () => (await withStyles("pod", import("./views/pod/index.tsx"))).PodView);
const RoundView = lazyView(
  async () => (await withStyles("pod", import("./views/round/index.tsx"))).RoundView,
);
const NowView = lazyView(async () => (await withStyles("now", import("./views/now/index.tsx"))).NowView);
const PluginsView = lazyView(
  async () => (await withStyles("plugins", import("./views/plugins/index.tsx"))).PluginsView,
);
const ResourcesView = lazyView(
  async () => (await withStyles("resources", import("./views/resources/index.tsx"))).ResourcesView,
);
const WhatIfView = lazyView(
  async () => (await withStyles("what-if", import("./views/what-if/view.tsx"))).WhatIf,
);

/** The views in navigation order. The first is shown if the address names none. */
export const views: readonly [View, ...View[]] = [
  { name: "timeline", title: "Timeline", Component: TimelineView, topics: [] },
  { name: "pod", title: "Pods", Component: PodView, topics: [] },
  { name: "now", title: "Now", Component: NowView, topics: ["eviction/budgets", "eviction/candidates"] },
  { name: "round", title: "Rounds", Component: RoundView, topics: [] },
  { name: "plugins", title: "Plugins", Component: PluginsView, topics: ["devices", "claims"] },
  {
    name: "resources",
    title: "Resources",
    Component: ResourcesView,
    topics: ["objects", "devices", "claims"],
  },
  { name: "what-if", title: "What if", Component: WhatIfView, topics: [] },
];
