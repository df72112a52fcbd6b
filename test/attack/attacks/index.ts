import type { Attack } from "../attack.ts";
import { apiServerAttacks } from "./api-server.ts";
import { httpAttacks } from "./http.ts";
import { pluginAttacks } from "./plugins.ts";

/** Nothing happens: what the machine alone does to the figures. */
const idle: Attack = { name: "idle", about: "nothing, for comparison", isShort: true };

/** The same for attacks that are measured with the start. */
const start: Attack = {
  name: "start",
  about: "nothing, measured with the start of the agent",
  isShort: true,
  server: { fromStart: true, answer: () => false },
};

/** What attacks are compared with; always measured. */
export const controls: readonly Attack[] = [idle, start];

export const attacks: readonly Attack[] = [
  ...controls,
  ...pluginAttacks,
  ...httpAttacks,
  ...apiServerAttacks,
];
