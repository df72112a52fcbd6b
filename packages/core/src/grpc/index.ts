export { type DialOptions, dialUnix } from "./dial-unix.ts";
export { fromGrpcError, toServerError } from "./grpc-errors.ts";
export { limitInformationalAnswers } from "./informational-limit.ts";
export { KeptServer, type KeptServerOptions, keepServing } from "./kept-server.ts";
export { checkEntries, type RepeatedFields } from "./message-entries.ts";
export { RawConnection } from "./raw-connection.ts";
export { streamMessages } from "./server-stream.ts";
export { type OwnSocket, placeSocket, removeSocket } from "./socket-file.ts";
export { UnaryChannel } from "./unary-channel.ts";
