import { kubeletTexts } from "@nodekeeper/api/wording";
import { shown } from "../../../text.ts";
import type { Driver, DriverClaims } from "./device-state.ts";

const streams: Record<Driver["state"], string> = {
  waiting: "waiting for the first message",
  streaming: "streaming",
  unresponsive: "the driver does not answer",
  ended: "ended by the driver",
  failing: "failing",
  none: "the driver does not stream devices",
};

/** Returns the state of a driver's device stream in words. */
export function streamText({ isRegistered, state }: Pick<Driver, "isRegistered" | "state">): string {
  return isRegistered ? streams[state] : "disconnected";
}

/** Returns the registration state with the kubelet for a driver. If the agent prepares no claims, names the setting. */
export function kubeletText(claims: DriverClaims | undefined): string {
  if (!claims) return "the agent prepares no claims (devices.kubeletPlugin.enabled)";
  const text = kubeletTexts[claims.kubelet];
  return claims.reason ? `${text}: ${shown(claims.reason, 500)}` : text;
}
