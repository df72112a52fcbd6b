import type { IncomingMessage, ServerResponse } from "node:http";

/** Where an attacker finds the agent. */
export interface Target {
  /** The directory in which the agent looks for plugins. */
  pluginDir: string;
  /** Of its status server, on the loopback. */
  port: number;
}

/** Something that a neighbour on the node or in the network can do to the agent. */
export interface Attack {
  name: string;
  /** One line for the help and the table. */
  about: string;
  /** Whether the short form has it. */
  isShort: boolean;
  /** Attacks until the process is killed; called when the agent is ready. */
  run?(target: Target): Promise<void>;
  /** Set if the attacker is the API server, or a proxy in front of it. */
  server?: HostileServer;
}

/** A proxy in front of the API server that answers some requests itself. */
export interface HostileServer {
  /** Whether it does so before the agent starts; otherwise open watches end when the attack starts. */
  fromStart: boolean;
  /** Answers a request; false if the request is to be passed on. */
  answer(request: IncomingMessage, response: ServerResponse): boolean;
}
