export { type DialOptions, dialUnix } from "./dial-unix.ts";
export { fromGrpcError } from "./grpc-errors.ts";
