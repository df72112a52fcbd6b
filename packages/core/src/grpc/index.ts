export { type DialOptions, dialUnix } from "./dial-unix.ts";
export { errorIdTrailer, fromGrpcError, isUnsent, toServerError } from "./grpc-errors.ts";
export { type HeartbeatOptions, watchHeartbeat } from "./heartbeat.ts";
export { limitInformationalAnswers } from "./informational-limit.ts";
export { KeptServer, type KeptServerOptions, keepServing } from "./kept-server.ts";
export { MessageBuffers } from "./message-buffers.ts";
export {
  checkEntries,
  decodeMessage,
  type MessageBounds,
  numbers,
  type RepeatedFields,
} from "./message-entries.ts";
export { RawConnection } from "./raw-connection.ts";
export { streamMessages } from "./server-stream.ts";
export { type OwnSocket, placeSocket, removeSocket, removeStaleSockets } from "./socket-file.ts";
export { UnaryChannel } from "./unary-channel.ts";
export { UnaryResponse } from "./unary-response.ts";
