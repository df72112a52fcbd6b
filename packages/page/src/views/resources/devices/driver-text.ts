import { shown } from "../../../text.ts";
import type { Driver, DriverClaims } from "./device-state.ts";

const streams: Record<Driver["state"], string> = {
  waiting: "waiting for the first message",
  streaming: "streaming",
  ended: "ended by the driver",
  failing: "failing",
  none: "the driver does not stream devices",
};

/** The state of a driver's stream of devices in words. */
export function streamText({ isRegistered, state }: Pick<Driver, "isRegistered" | "state">): string {
  return isRegistered ? streams[state] : "disconnected";
}

const kubelets: Record<DriverClaims["kubelet"], string> = {
  waiting: "not registered yet: the kubelet has not answered",
  registered: "registered: the agent prepares the driver's claims",
  refused: "registration refused",
  ownPlugin: "the driver registers with the kubelet itself",
  none: "not registered",
};

/** How the agent stands with the kubelet for a driver; where it prepares no claims, the setting. */
export function kubeletText(claims: DriverClaims | undefined): string {
  if (!claims) return "the agent prepares no claims (devices.kubeletPlugin.enabled)";
  const text = kubelets[claims.kubelet];
  return claims.reason ? `${text}: ${shown(claims.reason, 500)}` : text;
}
