import type { ComponentType } from "preact";
import { lazyView } from "./parts/lazy-view.tsx";
import type { ViewProps } from "./view-props.ts";

export interface View {
  /** The first part of its addresses. */
  readonly name: string;
  /** Whether only links lead to it, and the navigation does not. */
  readonly isLinkedOnly?: boolean;
  readonly title: string;
  readonly Component: ComponentType<ViewProps>;
  /** Topics of the stream that it needs beside those that all have: paths of answers. */
  readonly topics: readonly ("objects" | "devices" | "claims" | "eviction/budgets" | "eviction/candidates")[];
}

// Each is a file of its own, which is loaded when the view is opened. Their styles are in main.tsx.
const TimelineView = lazyView(async () => (await import("./views/timeline/index.tsx")).TimelineView);
const PodView = lazyView(async () => (await import("./views/pod/index.tsx")).PodView);
const RoundView = lazyView(async () => (await import("./views/round/index.tsx")).RoundView);
const NowView = lazyView(async () => (await import("./views/now/index.tsx")).NowView);
const PluginsView = lazyView(async () => (await import("./views/plugins/index.tsx")).PluginsView);
const ResourcesView = lazyView(async () => (await import("./views/resources/index.tsx")).ResourcesView);
const WhatIfView = lazyView(async () => (await import("./views/what-if/view.tsx")).WhatIf);

/** The views, in the order of the navigation; the first is shown where the address names none. */
export const views: readonly [View, ...View[]] = [
  { name: "timeline", title: "Timeline", Component: TimelineView, topics: [] },
  { name: "pod", title: "Pods", Component: PodView, topics: [] },
  { name: "now", title: "Now", Component: NowView, topics: ["eviction/budgets", "eviction/candidates"] },
  { name: "plugins", title: "Plugins", Component: PluginsView, topics: ["devices", "claims"] },
  {
    name: "resources",
    title: "Resources",
    Component: ResourcesView,
    topics: ["objects", "devices", "claims"],
  },
  { name: "what-if", title: "What if", Component: WhatIfView, topics: [] },
  { name: "round", title: "Rounds", Component: RoundView, topics: [], isLinkedOnly: true },
];
