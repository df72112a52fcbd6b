// Makes fetch() in tests open a connection for each request. A kept-alive connection could be reused just as the server
// closes it: if client and server share a process that stalls for longer than the server's timeout, as on a busy
// machine, the request fails with ECONNRESET.
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
