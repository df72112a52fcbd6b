import type { ApiAnswers } from "../openapi/index.ts";

/** Whether the kubelet has registered the agent as the plugin of a driver, in words. */
export const kubeletTexts: Readonly<Record<ApiAnswers["claims"][number]["kubelet"], string>> = {
  waiting: "not registered yet: the kubelet has not responded",
  registered: "registered: the agent prepares its claims",
  refused: "registration refused",
  ownPlugin: "the driver registers with the kubelet itself",
  none: "not registered",
};
