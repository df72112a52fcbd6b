import type { ComponentType } from "preact";
import type { ViewProps } from "./view-props.ts";
import { NowView } from "./views/now/index.tsx";
import { PluginsView } from "./views/plugins/index.tsx";
import { PodView } from "./views/pod/index.tsx";
import { ResourcesView } from "./views/resources/index.tsx";
import { TimelineView } from "./views/timeline/index.tsx";
import { WhatIfView } from "./views/what-if/index.tsx";

export interface View {
  /** The first part of its addresses. */
  readonly name: string;
  readonly title: string;
  readonly Component: ComponentType<ViewProps>;
  /** Topics of the stream that it needs beside those that all have: paths of answers. */
  readonly topics: readonly ("objects" | "devices" | "claims" | "eviction/budgets" | "eviction/candidates")[];
}

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
];
