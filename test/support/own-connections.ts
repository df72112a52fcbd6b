// fetch() of tests makes a connection for each request. One that is kept would be used again at the moment at which the
// server gives it up: where both ends are in one process, and that stood still for longer than the server waits, as it does
// on a busy machine, the request fails with ECONNRESET.
const mark = Symbol.for("nodekeeper.ownConnections");

if (!Object.hasOwn(globalThis.fetch, mark)) {
  const keeping = globalThis.fetch;
  const closing: typeof fetch = (input, init = {}) => {
    const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
    headers.set("connection", "close");
    return keeping(input, { ...init, headers });
  };
  // Files share processes, and each runs this.
  globalThis.fetch = Object.assign(closing, { [mark]: true });
}
