/** A key, or several that belong together, and what they do. */
export type KeyHelp = readonly [keys: readonly string[], what: string];

/** The keys of the page by where they work. */
export const keyGroups: readonly (readonly [where: string, keys: readonly KeyHelp[]])[] = [
  [
    "Everywhere",
    [
      [["/"], "search pods, plugins, devices, rounds, views"],
      [["?"], "show these keys"],
      [["Esc"], "close what is open above the view"],
    ],
  ],
  [
    "Search",
    [
      [["↑", "↓"], "previous, next result"],
      [["Enter"], "open the result"],
    ],
  ],
  [
    "Timeline",
    [
      [["←", "→"], "earlier, later; with Shift: further"],
      [["+", "−"], "zoom in, out"],
      [["[", "]"], "previous, next mark"],
      [["p"], "pause, or follow the current time"],
      [["Esc"], "close the details"],
    ],
  ],
  [
    "Tree of resources",
    [
      [["↑", "↓"], "previous, next row"],
      [["→", "←"], "open, close"],
      [["Home", "End"], "first, last row"],
      [["Enter"], "select the row"],
    ],
  ],
  [
    "Devices and plots",
    [
      [["←", "→"], "previous, next device or reading"],
      [["Home", "End"], "first, last"],
    ],
  ],
];
